import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
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
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/** The change feed with the official Java SDK: cases of {@link Conformance}. */
final class Changes {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int KEYS = 7;
    /** A layout changes and a processor begins in seconds; a machine may be busy with other things. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    /** Long enough for a processor to tell what it should not. */
    private static final Duration SILENCE = Duration.ofSeconds(1);

    private final CosmosDatabase database;
    private final CosmosAsyncDatabase asynchronous;
    private final int partitions;
    private final int throughput;

    Changes(CosmosDatabase database, CosmosAsyncDatabase asynchronous, int partitions, int throughput) {
        this.database = database;
        this.asynchronous = asynchronous;
        this.partitions = partitions;
        this.throughput = throughput;
    }

    /** An item in one version. */
    private record Version(String id, int version) {}

    /** Writes items, and knows what a feed must tell that begins where {@link #take} was last called. */
    private static final class Writer {
        private final CosmosContainer container;
        private final Map<String, Map<String, Integer>> expected = new TreeMap<>();

        Writer(CosmosContainer container) {
            this.container = container;
        }

        static String key(int number) {
            return "key " + number % KEYS;
        }

        JsonNode put(int number, int version) {
            ObjectNode item = JSON.createObjectNode().put("id", "" + number).put("pk", key(number)).put("version", version);
            JsonNode written = container.upsertItem(item).getItem();
            Map<String, Integer> versions = expected.computeIfAbsent(key(number), key -> new LinkedHashMap<>());
            versions.remove("" + number);
            versions.put("" + number, version);
            return written;
        }

        void delete(int number) {
            container.deleteItem("" + number, new PartitionKey(key(number)), null);
            expected.getOrDefault(key(number), new LinkedHashMap<>()).remove("" + number);
        }

        /** Creates items, changes some of them once or twice and deletes some. */
        void writeSome(int first) {
            int end = first + 4 * KEYS;
            IntStream.range(first, end).forEach(number -> put(number, 0));
            IntStream.iterate(first, number -> number < end, number -> number + 3).forEach(number -> put(number, 1));
            IntStream.iterate(first, number -> number < end, number -> number + 6).forEach(number -> put(number, 2));
            IntStream.iterate(first, number -> number < end, number -> number + 5).forEach(this::delete);
        }

        Map<String, List<Version>> take() {
            Map<String, List<Version>> taken = new TreeMap<>();
            expected.forEach((key, versions) -> versions.forEach((id, version) ->
                    taken.computeIfAbsent(key, each -> new ArrayList<>()).add(new Version(id, version))));
            expected.clear();
            return taken;
        }
    }

    /** Of each key every item once, in its latest version, in the order of the writes. */
    private static void check(List<JsonNode> changes, Map<String, List<Version>> expected) {
        Map<String, List<Version>> told = new TreeMap<>();
        Map<String, Long> last = new TreeMap<>();
        for (JsonNode change : changes) {
            String key = change.get("pk").asText();
            told.computeIfAbsent(key, each -> new ArrayList<>())
                    .add(new Version(change.get("id").asText(), change.get("version").asInt()));
            long lsn = change.get("_lsn").asLong();
            Conformance.check(lsn > last.getOrDefault(key, 0L), "_lsn", lsn, "after", last.get(key), "of", key);
            last.put(key, lsn);
        }
        expected.forEach((key, versions) -> Conformance.same(versions, told.get(key)));
        Conformance.same(expected.keySet(), told.keySet());
    }

    /** What a feed told, and the position behind it. */
    private record Told(List<JsonNode> changes, String position) {}

    /** All that there is now: the pages of this SDK end where nothing is new. */
    private static Told feed(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<JsonNode> changes = new ArrayList<>();
        String position = null;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            changes.addAll(page.getResults());
            position = page.getContinuationToken();
        }
        return new Told(changes, position);
    }

    private static Told feed(CosmosContainer container, String position) {
        return feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(position));
    }

    private static Told fromBeginning(CosmosContainer container, FeedRange range, int size) {
        return feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range).setMaxItemCount(size));
    }

    private static Told fromBeginning(CosmosContainer container) {
        return fromBeginning(container, FeedRange.forFullRange(), 100);
    }

    private static void nothingNew(CosmosContainer container, String position) {
        Conformance.same(List.of(), feed(container, position).changes);
    }

    private CosmosContainer newContainer(String name) {
        CosmosContainerProperties properties = new CosmosContainerProperties(name, "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(name);
    }

    private void fromTheBeginning() {
        CosmosContainer container = newContainer("changes");
        Conformance.same(List.of(), fromBeginning(container).changes);
        Writer writer = new Writer(container);
        writer.writeSome(0);
        Map<String, List<Version>> expected = writer.take();
        for (int size : List.of(100, 3, 1)) {
            check(fromBeginning(container, FeedRange.forFullRange(), size).changes, expected);
        }
    }

    private void goesOnFromItsContinuation() {
        CosmosContainer container = newContainer("continued");
        Writer writer = new Writer(container);
        writer.writeSome(0);
        List<JsonNode> changes = new ArrayList<>();
        CosmosChangeFeedRequestOptions next =
                CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        while (true) {
            // Each page by an iterator of its own.
            FeedResponse<JsonNode> page = container.queryChangeFeed(next.setMaxItemCount(2), JsonNode.class)
                    .iterableByPage().iterator().next();
            if (page.getResults().isEmpty()) {
                break;
            }
            Conformance.check(page.getResults().size() <= 2, "a page of", page.getResults().size());
            changes.addAll(page.getResults());
            next = CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(page.getContinuationToken());
        }
        check(changes, writer.take());
        Told told = fromBeginning(container);
        for (int first : List.of(10, 20)) {
            writer.writeSome(first);
            told = feed(container, told.position);
            check(told.changes, writer.take());
        }
        nothingNew(container, told.position);
        // The delete of an item that was told before is no change in this mode.
        writer.delete(1);
        nothingNew(container, told.position);
    }

    private void fromNow() {
        CosmosContainer container = newContainer("now");
        Writer writer = new Writer(container);
        writer.writeSome(0);
        writer.take();
        Told told = feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()));
        Conformance.same(List.of(), told.changes);
        writer.writeSome(2);
        told = feed(container, told.position);
        check(told.changes, writer.take());
        nothingNew(container, told.position);
    }

    private void fromAPointInTime() {
        CosmosContainer container = newContainer("since");
        Writer writer = new Writer(container);
        writer.writeSome(0);
        long before = writer.put(0, 3).get("_ts").asLong();
        // Times of changes are whole seconds; two of them leave one without a change in between.
        while (writer.put(0, 4).get("_ts").asLong() < before + 2) {
            pause(Duration.ofMillis(100));
        }
        writer.take();
        writer.put(0, 5);
        writer.writeSome(20);
        Told told = feed(container, CosmosChangeFeedRequestOptions
                .createForProcessingFromPointInTime(Instant.ofEpochSecond(before + 1), FeedRange.forFullRange())
                .setMaxItemCount(4));
        check(told.changes, writer.take());
        nothingNew(container, told.position);
        writer.writeSome(1);
        check(feed(container, told.position).changes, writer.take());
    }

    private void ofOneKey() {
        CosmosContainer container = database.getContainer("continued");
        Told whole = fromBeginning(container);
        for (int at = 0; at < KEYS; at++) {
            String key = Writer.key(at);
            FeedRange range = FeedRange.forLogicalPartition(new PartitionKey(key));
            Told told = fromBeginning(container, range, 2);
            Conformance.check(!told.changes.isEmpty(), "nothing of", key);
            Conformance.same(whole.changes.stream().filter(change -> change.get("pk").asText().equals(key)).toList(),
                    told.changes);
            nothingNew(container, told.position);
        }
        FeedRange range = FeedRange.forLogicalPartition(new PartitionKey("key 3"));
        Told told = feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(range));
        Writer writer = new Writer(container);
        writer.writeSome(100);
        check(feed(container, told.position).changes, Map.of("key 3", writer.take().get("key 3")));
    }

    private void ofFeedRanges() {
        CosmosContainer container = database.getContainer("continued");
        Told whole = fromBeginning(container);
        List<FeedRange> ranges = container.getFeedRanges();
        Conformance.same(partitions, ranges.size());
        List<Told> parts = ranges.stream().map(range -> fromBeginning(container, range, 5)).toList();
        for (Told part : parts) {
            List<Long> positions = part.changes.stream().map(change -> change.get("_lsn").asLong()).toList();
            Conformance.same(positions.stream().sorted().distinct().toList(), positions);
        }
        Comparator<JsonNode> byId = Comparator.comparing(change -> change.get("id").asText());
        Conformance.same(whole.changes.stream().sorted(byId).toList(),
                parts.stream().flatMap(part -> part.changes.stream()).sorted(byId).toList());
        Writer writer = new Writer(container);
        writer.writeSome(200);
        check(parts.stream().flatMap(part -> feed(container, part.position).changes.stream()).toList(), writer.take());
    }

    /**
     * All that there is now, while ranges are split.
     *
     * The SDK goes round the ranges until one that had nothing comes up again. When it meets a split, the second child
     * goes to the end of its queue, behind that one: such a round may end before its turn, and what was written there
     * comes with the next round.
     */
    private static Told feedThroughSplits(CosmosContainer container, String position) {
        Told told = feed(container, position);
        for (String before = position; ranges(before) != ranges(told.position); ) {
            before = told.position;
            Told next = feed(container, before);
            told.changes.addAll(next.changes);
            told = new Told(told.changes, next.position);
        }
        return told;
    }

    /** How many ranges a position has: it is JSON in base 64, with a "range" for each. */
    private static int ranges(String position) {
        String text = new String(Base64.getDecoder().decode(position), StandardCharsets.UTF_8);
        int count = text.split("\"range\"", -1).length - 1;
        Conformance.check(count > 0, "no ranges in", text);
        return count;
    }

    /** More throughput than the partitions can have makes the server split them all. */
    private void goesOnThroughSplits() {
        CosmosContainer container = newContainer("splitting");
        Writer writer = new Writer(container);
        Told told = feed(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()));
        Instant deadline = Instant.now().plus(PATIENCE);
        int after = 0;
        for (int number = 0; after < 2 * KEYS; number++) {
            Conformance.check(Instant.now().isBefore(deadline), "no split");
            if (number == KEYS) {
                split(container);
            }
            writer.put(number % (2 * KEYS), number);
            told = feedThroughSplits(container, told.position);
            check(told.changes, writer.take());
            after += container.getFeedRanges().size() > partitions ? 1 : 0;
        }
        nothingNew(container, told.position);
    }

    private void split(CosmosContainer container) {
        container.replaceThroughput(ThroughputProperties.createManualThroughput(10000 * partitions + 1000));
    }

    private static void pause(Duration duration) {
        try {
            Thread.sleep(duration.toMillis());
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    // The processor, which follows all partitions and keeps its positions in leases.

    /** How a processor is told to hand over changes. */
    private interface Handling extends BiFunction<ChangeFeedProcessorBuilder, Consumer<JsonNode>, ChangeFeedProcessorBuilder> {}

    /** Changes as items, by leases of ranges that have names. */
    private static ChangeFeedProcessorBuilder items(ChangeFeedProcessorBuilder builder, Consumer<JsonNode> told) {
        return builder.handleChanges(changes -> changes.forEach(told));
    }

    /** Changes as items beside what is known of the change, by leases of ranges of hashes. */
    private static ChangeFeedProcessorBuilder envelopes(ChangeFeedProcessorBuilder builder, Consumer<JsonNode> told) {
        return builder.handleLatestVersionChanges(changes -> changes.forEach(change -> {
            ObjectNode item = change.getCurrent().deepCopy();
            told.accept(item.put("_lsn", change.getChangeFeedMetaData().getLogSequenceNumber()));
        }));
    }

    private ChangeFeedProcessor processor(String name, Handling handling, Consumer<JsonNode> told) {
        ChangeFeedProcessorOptions options = new ChangeFeedProcessorOptions()
                .setStartFromBeginning(true)
                .setMaxItemCount(5)
                .setFeedPollDelay(Duration.ofMillis(50))
                .setLeaseAcquireInterval(Duration.ofMillis(200));
        ChangeFeedProcessorBuilder builder = new ChangeFeedProcessorBuilder()
                .hostName("host")
                .feedContainer(asynchronous.getContainer(name))
                .leaseContainer(asynchronous.getContainer(name + "Leases"))
                .options(options);
        return handling.apply(builder, told).buildChangeFeedProcessor();
    }

    /**
     * Waits for what is expected, and keeps the last change of each key in {@code last}. Those {@code again} may come
     * once more: a processor that is stopped before it has written its leases tells its last changes twice.
     */
    private static void await(
            BlockingQueue<JsonNode> told, Map<String, List<Version>> expected, Set<JsonNode> again, Map<String, JsonNode> last) {
        List<JsonNode> changes = new ArrayList<>();
        int many = expected.values().stream().mapToInt(List::size).sum();
        while (changes.size() < many) {
            JsonNode change = next(told, PATIENCE);
            Conformance.check(change != null, changes.size(), "changes of", many);
            if (!again.remove(change)) {
                changes.add(change);
            }
        }
        check(changes, expected);
        changes.forEach(change -> last.put(change.get("pk").asText(), change));
    }

    private static JsonNode next(BlockingQueue<JsonNode> told, Duration patience) {
        try {
            return told.poll(patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    /** Tells everything, goes on from its leases after a stop, and through splits while it runs. */
    private void processed(String name, Handling handling) {
        CosmosContainer container = newContainer(name);
        database.createContainer(new CosmosContainerProperties(name + "Leases", "/id"));
        Writer writer = new Writer(container);
        BlockingQueue<JsonNode> told = new LinkedBlockingQueue<>();
        Set<JsonNode> again = new HashSet<>();
        for (int first : List.of(0, 10)) {
            Map<String, JsonNode> last = new TreeMap<>();
            writer.writeSome(first);
            ChangeFeedProcessor processor = processor(name, handling, told::add);
            processor.start().block(PATIENCE);
            await(told, writer.take(), again, last);
            Instant deadline = Instant.now().plus(PATIENCE);
            for (int number = 0, after = 0; after < KEYS; number++) {
                Conformance.check(Instant.now().isBefore(deadline), "no split");
                if (number == KEYS && first > 0) {
                    split(container);
                }
                writer.put(number % (2 * KEYS), number);
                await(told, writer.take(), again, last);
                after += first == 0 || container.getFeedRanges().size() > partitions ? 1 : 0;
            }
            processor.stop().block(PATIENCE);
            Conformance.same(null, next(told, SILENCE));
            again.addAll(last.values());
        }
    }

    List<Conformance.Case> cases() {
        return List.of(
                new Conformance.Case("changeFeedFromTheBeginning", this::fromTheBeginning),
                new Conformance.Case("changeFeedGoesOnFromItsContinuation", this::goesOnFromItsContinuation),
                new Conformance.Case("changeFeedFromNow", this::fromNow),
                new Conformance.Case("changeFeedFromAPointInTime", this::fromAPointInTime),
                new Conformance.Case("changeFeedOfOneKey", this::ofOneKey),
                new Conformance.Case("changeFeedOfFeedRanges", this::ofFeedRanges),
                new Conformance.Case("changeFeedGoesOnThroughSplits", this::goesOnThroughSplits),
                new Conformance.Case("changeFeedProcessor", () -> processed("processed", Changes::items)),
                new Conformance.Case("changeFeedProcessorOfLatestVersions", () -> processed("latest", Changes::envelopes)),
                new Conformance.Case("changeFeedPositionIsKept", this::positionIsKept));
    }

    private void positionIsKept() {
        CosmosContainer container = newContainer("followed");
        Writer writer = new Writer(container);
        writer.writeSome(0);
        Told told = fromBeginning(container);
        List.of(3, 1, 2).forEach(number -> writer.put(number, 7));
        ObjectNode position = JSON.createObjectNode().put("id", "position").put("deviceId", "followed");
        database.getContainer("coll").upsertItem(position.put("position", told.position));
    }

    void verifyAfterRestart() {
        CosmosContainer container = database.getContainer("followed");
        JsonNode kept = database.getContainer("coll")
                .readItem("position", new PartitionKey("followed"), JsonNode.class).getItem();
        Told told = feed(container, kept.get("position").asText());
        Map<String, List<Version>> missed = new TreeMap<>();
        List.of(1, 2, 3).forEach(number -> missed.put(Writer.key(number), List.of(new Version("" + number, 7))));
        check(told.changes, missed);
        Writer writer = new Writer(container);
        writer.writeSome(30);
        told = feed(container, told.position);
        check(told.changes, writer.take());
        nothingNew(container, told.position);
        List<String> all = container.queryItems("SELECT VALUE c.id FROM c ORDER BY c.id", null, String.class).stream().toList();
        Conformance.same(all, fromBeginning(container).changes.stream().map(change -> change.get("id").asText()).sorted().toList());
    }
}
