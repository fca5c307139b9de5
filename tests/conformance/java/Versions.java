import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.ChangeFeedMetaData;
import com.azure.cosmos.models.ChangeFeedOperationType;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** All versions and deletes with the official Java SDK: cases of {@link Conformance}. */
final class Versions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int KEYS = 7;
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private final CosmosDatabase database;
    private final CosmosAsyncDatabase asynchronous;
    private final int partitions;
    private final int throughput;

    Versions(CosmosDatabase database, CosmosAsyncDatabase asynchronous, int partitions, int throughput) {
        this.database = database;
        this.asynchronous = asynchronous;
        this.partitions = partitions;
        this.throughput = throughput;
    }

    /** One operation, with the version that the item got or had. */
    private record Told(ChangeFeedOperationType operation, String id, int version) {}

    /** Writes items, and knows every operation on each key since {@link #take} was last called. */
    private static final class Writer {
        private final CosmosContainer container;
        private final Map<Integer, Integer> items = new TreeMap<>();
        private Map<String, List<Told>> story = new TreeMap<>();

        Writer(CosmosContainer container) {
            this.container = container;
        }

        static String key(int number) {
            return "key " + number % KEYS;
        }

        private void tell(ChangeFeedOperationType operation, int number, int version) {
            story.computeIfAbsent(key(number), key -> new ArrayList<>()).add(new Told(operation, "" + number, version));
        }

        void put(int number, int version) {
            container.upsertItem(JSON.createObjectNode().put("id", "" + number).put("pk", key(number)).put("version", version));
            boolean isNew = items.put(number, version) == null;
            tell(isNew ? ChangeFeedOperationType.CREATE : ChangeFeedOperationType.REPLACE, number, version);
        }

        void delete(int number) {
            container.deleteItem("" + number, new PartitionKey(key(number)), null);
            tell(ChangeFeedOperationType.DELETE, number, items.remove(number));
        }

        void writeSome(int first) {
            int end = first + 3 * KEYS;
            IntStream.range(first, end).forEach(number -> put(number, 0));
            IntStream.iterate(first, number -> number < end, number -> number + 4).forEach(number -> put(number, 1));
            IntStream.iterate(first, number -> number < end, number -> number + 3).forEach(this::delete);
        }

        Map<String, List<Told>> take() {
            Map<String, List<Told>> taken = story;
            story = new TreeMap<>();
            return taken;
        }
    }

    /** The operations on each key, in their order. */
    private static Map<String, List<Told>> told(List<ChangeFeedProcessorItem> changes) {
        Map<String, List<Told>> story = new TreeMap<>();
        Map<String, Long> last = new TreeMap<>();
        for (ChangeFeedProcessorItem change : changes) {
            ChangeFeedMetaData metadata = change.getChangeFeedMetaData();
            ChangeFeedOperationType operation = metadata.getOperationType();
            JsonNode item = operation == ChangeFeedOperationType.DELETE ? change.getPrevious() : change.getCurrent();
            if (operation == ChangeFeedOperationType.DELETE) {
                JsonNode names = change.toJsonNode().get("metadata");
                Conformance.check(change.getCurrent().isEmpty() && !metadata.isTimeToLiveExpired(), "a delete", change);
                Conformance.same(item.get("id"), names.get("id"));
                Conformance.same(item.get("pk"), names.get("partitionKey").get("pk"));
            }
            String key = item.get("pk").asText();
            long lsn = metadata.getLogSequenceNumber();
            Conformance.check(lsn > last.getOrDefault(key, 0L), "order of", key);
            Conformance.check((operation == ChangeFeedOperationType.CREATE) == (metadata.getPreviousLogSequenceNumber() == 0), change);
            Conformance.check(metadata.getConflictResolutionTimestamp().getEpochSecond() >= item.get("_ts").asLong(), change);
            last.put(key, lsn);
            story.computeIfAbsent(key, any -> new ArrayList<>())
                    .add(new Told(operation, item.get("id").asText(), item.get("version").asInt()));
        }
        return story;
    }

    private record Fed(List<ChangeFeedProcessorItem> changes, String position) {}

    private static Fed feed(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<ChangeFeedProcessorItem> changes = new ArrayList<>();
        String position = null;
        for (FeedResponse<ChangeFeedProcessorItem> page :
                container.queryChangeFeed(options.allVersionsAndDeletes(), ChangeFeedProcessorItem.class).iterableByPage()) {
            changes.addAll(page.getResults());
            position = page.getContinuationToken();
        }
        return new Fed(changes, position);
    }

    private static Fed feed(CosmosContainer container, String position) {
        return feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(position).setMaxItemCount(3));
    }

    private static Fed fromNow(CosmosContainer container, FeedRange range) {
        return feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(range));
    }

    private CosmosContainer newContainer(String name, Integer ttl) {
        CosmosContainerProperties properties = new CosmosContainerProperties(name, "/pk");
        properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        properties.setDefaultTimeToLiveInSeconds(ttl);
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        CosmosContainer container = database.getContainer(name);
        Conformance.same(Duration.ofMinutes(10),
                container.read().getProperties().getChangeFeedPolicy().getRetentionDurationForAllVersionsAndDeletesPolicy());
        return container;
    }

    private void fromNowOn() {
        CosmosContainer container = newContainer("versions", null);
        Writer writer = new Writer(container);
        writer.writeSome(0);
        writer.take();
        Fed fed = fromNow(container, FeedRange.forFullRange());
        Conformance.same(List.of(), fed.changes);
        for (int first : List.of(20, 0)) {
            writer.writeSome(first);
            fed = feed(container, fed.position);
            Conformance.same(writer.take(), told(fed.changes));
        }
        Conformance.same(List.of(), feed(container, fed.position).changes);
        ObjectNode position = JSON.createObjectNode().put("id", "versions").put("deviceId", "followed");
        database.getContainer("coll").upsertItem(position.put("position", fed.position));
    }

    private void ofOneKeyAndOfFeedRanges() {
        CosmosContainer container = newContainer("partsOfVersions", null);
        Map<String, String> keys = new TreeMap<>();
        IntStream.range(0, KEYS).mapToObj(Writer::key).forEach(key ->
                keys.put(key, fromNow(container, FeedRange.forLogicalPartition(new PartitionKey(key))).position));
        List<String> parts = container.getFeedRanges().stream().map(range -> fromNow(container, range).position).toList();
        Writer writer = new Writer(container);
        writer.writeSome(0);
        Map<String, List<Told>> expected = writer.take();
        keys.forEach((key, position) ->
                Conformance.same(Map.of(key, expected.get(key)), told(feed(container, position).changes)));
        Conformance.same(expected,
                told(parts.stream().flatMap(position -> feed(container, position).changes.stream()).toList()));
    }

    private void expiry() {
        CosmosContainer container = newContainer("expiringVersions", -1);
        Fed fed = fromNow(container, FeedRange.forFullRange());
        container.createItem(JSON.createObjectNode().put("id", "short").put("pk", "a").put("ttl", 1));
        List<ChangeFeedProcessorItem> changes = new ArrayList<>();
        for (Instant deadline = Instant.now().plus(PATIENCE); changes.size() < 2; pause()) {
            Conformance.check(Instant.now().isBefore(deadline), "not expired");
            fed = feed(container, fed.position);
            changes.addAll(fed.changes);
        }
        ChangeFeedMetaData expired = changes.get(1).getChangeFeedMetaData();
        Conformance.same(ChangeFeedOperationType.DELETE, expired.getOperationType());
        Conformance.check(expired.isTimeToLiveExpired(), "not told as such");
    }

    /** Tells every operation, goes on from its leases after a stop, and through splits while it runs. */
    private void processed() {
        CosmosContainer container = newContainer("processedVersions", null);
        database.createContainer(new CosmosContainerProperties("processedVersionsLeases", "/id"));
        Writer writer = new Writer(container);
        BlockingQueue<ChangeFeedProcessorItem> told = new LinkedBlockingQueue<>();
        Set<String> seen = new HashSet<>();
        for (int round = 0; round < 2; round++) {
            ChangeFeedProcessor processor = processor(told);
            processor.start().block(PATIENCE);
            if (round == 0) {
                awaitLeases();
            }
            writer.writeSome(50 * round);
            await(told, writer, seen);
            Instant deadline = Instant.now().plus(PATIENCE);
            for (int number = 200, after = 0; after < KEYS; number++) {
                Conformance.check(Instant.now().isBefore(deadline), "no split");
                if (number == 200 + KEYS && round == 1) {
                    container.replaceThroughput(ThroughputProperties.createManualThroughput(10000 * partitions + 1000));
                }
                writer.put(number, number);
                writer.delete(number);
                await(told, writer, seen);
                after += round == 0 || container.getFeedRanges().size() > partitions ? 1 : 0;
            }
            processor.stop().block(PATIENCE);
            // What happens while none runs is told by the next.
            writer.put(1000 + round, 1);
        }
    }

    private ChangeFeedProcessor processor(BlockingQueue<ChangeFeedProcessorItem> told) {
        ChangeFeedProcessorOptions options = new ChangeFeedProcessorOptions()
                .setMaxItemCount(5)
                .setFeedPollDelay(Duration.ofMillis(50))
                .setLeaseAcquireInterval(Duration.ofMillis(200));
        return new ChangeFeedProcessorBuilder()
                .hostName("host")
                .feedContainer(asynchronous.getContainer("processedVersions"))
                .leaseContainer(asynchronous.getContainer("processedVersionsLeases"))
                .options(options)
                .handleAllVersionsAndDeletesChanges(changes -> changes.forEach(told::add))
                .buildChangeFeedProcessor();
    }

    /** A processor of this mode begins where it is when it has read each range for the first time. */
    private void awaitLeases() {
        CosmosContainer leases = database.getContainer("processedVersionsLeases");
        String query = "SELECT VALUE COUNT(1) FROM c WHERE IS_STRING(c.ContinuationToken)";
        Instant deadline = Instant.now().plus(PATIENCE);
        while (leases.queryItems(query, null, Integer.class).iterator().next() < partitions) {
            Conformance.check(Instant.now().isBefore(deadline), "no leases");
            pause();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    /** Waits for what was done; a processor that was stopped before it had written its leases tells some of it twice. */
    private static void await(BlockingQueue<ChangeFeedProcessorItem> queue, Writer writer, Set<String> seen) {
        Map<String, List<Told>> expected = writer.take();
        int many = expected.values().stream().mapToInt(List::size).sum();
        List<ChangeFeedProcessorItem> changes = new ArrayList<>();
        while (changes.size() < many) {
            ChangeFeedProcessorItem change;
            try {
                change = queue.poll(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
            } catch (InterruptedException stopped) {
                throw new IllegalStateException(stopped);
            }
            Conformance.check(change != null, changes.size(), "changes of", many);
            if (seen.add(change.toString())) {
                changes.add(change);
            }
        }
        Conformance.same(expected, told(changes));
    }

    List<Conformance.Case> cases() {
        return List.of(
                new Conformance.Case("allVersionsFromNowOn", this::fromNowOn),
                new Conformance.Case("allVersionsOfOneKeyAndOfFeedRanges", this::ofOneKeyAndOfFeedRanges),
                new Conformance.Case("expiryIsToldAsSuch", this::expiry),
                new Conformance.Case("allVersionsProcessor", this::processed));
    }

    void verifyAfterRestart() {
        CosmosContainer container = database.getContainer("versions");
        JsonNode kept = database.getContainer("coll")
                .readItem("versions", new PartitionKey("followed"), JsonNode.class).getItem();
        Fed fed = feed(container, kept.get("position").asText());
        Conformance.same(List.of(), fed.changes);
        Writer writer = new Writer(container);
        writer.writeSome(1000);
        Conformance.same(writer.take(), told(feed(container, fed.position).changes));
    }
}
