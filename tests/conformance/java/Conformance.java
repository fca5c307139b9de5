import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.CosmosUser;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/**
 * The official Java SDK, unmodified, against a running Orrery.
 *
 * <p>Usage: Conformance ENDPOINT KEY PARTITIONS [write|verify]
 *
 * <p>{@code write} runs everything and leaves some items behind; {@code verify} runs after a restart
 * and expects them. Each case prints {@code ok NAME} or {@code FAILED NAME: why}, and the last line
 * counts them. Cases that begin with the id of a row prove that row of {@code docs/partitioning}.
 * The SDK runs in gateway mode. It speaks plain http only where the system property
 * {@code COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED} allows it; over https it trusts what the
 * virtual machine's trust store holds.
 */
public final class Conformance {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Items that {@code write} leaves and {@code verify} expects. */
    private static final int KEPT = 50;

    private final String endpoint;
    private final String key;
    private final int partitions;
    private final int throughput;
    private final CosmosClient client;
    private final CosmosDatabase database;
    private final CosmosContainer container;
    private final Changes changes;
    private final Versions versions;
    private final Parity parity;
    private final Order order;

    record Case(String name, Runnable run) {}

    private Conformance(String endpoint, String key, int partitions) {
        this.endpoint = endpoint;
        this.key = key;
        this.partitions = partitions;
        throughput = partitions == 1 ? 400 : 6000 * partitions;
        client = builder(endpoint, key).buildClient();
        database = client.getDatabase("java" + partitions);
        container = database.getContainer("coll");
        CosmosAsyncDatabase asynchronous = builder(endpoint, key).buildAsyncClient().getDatabase(database.getId());
        changes = new Changes(database, asynchronous, partitions, throughput);
        versions = new Versions(database, asynchronous, partitions, throughput);
        parity = new Parity(() -> builder(endpoint, key), database, throughput);
        order = new Order(endpoint, key, database);
    }

    private static CosmosClientBuilder builder(String endpoint, String key) {
        return new CosmosClientBuilder().endpoint(endpoint).key(key).gatewayMode().contentResponseOnWriteEnabled(true);
    }

    // What the cases say of answers.

    static void check(boolean holds, Object... what) {
        if (!holds) {
            throw new AssertionError(Arrays.toString(what));
        }
    }

    static void same(Object expected, Object actual) {
        check(Objects.equals(expected, actual), actual, "instead of", expected);
    }

    private static CosmosException refused(int status, Runnable request) {
        try {
            request.run();
        } catch (CosmosException refusal) {
            check(refusal.getStatusCode() == status, refusal.getStatusCode(), refusal.getShortMessage());
            return refusal;
        }
        throw new AssertionError("not refused with " + status);
    }

    private static ObjectNode item(String id, String name, Object value) {
        ObjectNode item = JSON.createObjectNode().put("id", id);
        item.set(name, JSON.valueToTree(value));
        return item;
    }

    private static PartitionKey key(Object value) {
        return new PartitionKey(value);
    }

    private JsonNode read(String id, Object key) {
        return container.readItem(id, key(key), JsonNode.class).getItem();
    }

    private CosmosContainer createContainer(CosmosContainerProperties properties) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(properties.getId());
    }

    private static ObjectNode reading(int value) {
        return item("XMS-001-FE24C", "deviceId", "XMS-0001")
                .put("metricType", "Temperature")
                .put("metricValue", value)
                .put("unit", "Fahrenheit")
                .put("readingTime", "2026-11-15T10:00:00Z");
    }

    // The cases.

    private void sample1CreateDatabase() {
        same(201, client.createDatabase(database.getId()).getStatusCode());
        same(database.getId(), database.read().getProperties().getId());
        refused(409, () -> client.createDatabase(database.getId()));
    }

    private void sample2CreateContainerWithKeyAndThroughput() {
        CosmosContainerProperties read =
                createContainer(new CosmosContainerProperties("coll", "/deviceId")).read().getProperties();
        same(List.of("/deviceId"), read.getPartitionKeyDefinition().getPaths());
        same(IndexingMode.CONSISTENT, read.getIndexingPolicy().getIndexingMode());
        same(partitions, container.getFeedRanges().size());
    }

    private void sample3CreateItem() {
        CosmosItemResponse<ObjectNode> created = container.createItem(reading(105));
        same(201, created.getStatusCode());
        for (String name : List.of("_rid", "_etag", "_ts", "_self")) {
            check(created.getItem().hasNonNull(name), "no", name);
        }
        refused(409, () -> container.createItem(reading(105)));
    }

    private void sample4ReadByKeyAndId() {
        JsonNode read = read("XMS-001-FE24C", "XMS-0001");
        reading(105).fields().forEachRemaining(field -> same(field.getValue(), read.get(field.getKey())));
        refused(404, () -> read("XMS-001-FE24C", "XMS-0002"));
        refused(404, () -> read("nothing", "XMS-0001"));
    }

    private void sample5Replace() {
        same(104, container.replaceItem(reading(104), "XMS-001-FE24C", key("XMS-0001"), null)
                .getItem().get("metricValue").asInt());
        same(104, read("XMS-001-FE24C", "XMS-0001").get("metricValue").asInt());
        refused(404, () -> container.replaceItem(item("nothing", "deviceId", "x"), "nothing", key("x"), null));
    }

    private void sample6Delete() {
        same(204, container.deleteItem("XMS-001-FE24C", key("XMS-0001"), null).getStatusCode());
        refused(404, () -> read("XMS-001-FE24C", "XMS-0001"));
        refused(404, () -> container.deleteItem("XMS-001-FE24C", key("XMS-0001"), null));
    }

    private static final String HOT_ONES =
            "SELECT * FROM root WHERE root[\"metricType\"] = \"Temperature\" AND root[\"metricValue\"] > 100";

    /** Readings of ten devices, every second one a temperature. */
    private static List<ObjectNode> readings() {
        List<ObjectNode> readings = new ArrayList<>();
        for (int device = 1; device <= 10; device++) {
            for (int n = 0; n < 12; n++) {
                readings.add(item(device + "-" + n, "deviceId", String.format("XMS-%04d", device))
                        .put("metricType", n % 2 == 1 ? "Humidity" : "Temperature")
                        .put("metricValue", 80 + (device * 37 + n * 11) % 50));
            }
        }
        return readings;
    }

    private static List<Integer> hotValues() {
        return readings().stream()
                .filter(each -> each.get("metricType").asText().equals("Temperature"))
                .map(each -> each.get("metricValue").asInt())
                .filter(value -> value > 100)
                .sorted()
                .toList();
    }

    private static CosmosQueryRequestOptions inParallel() {
        return new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(10).setMaxBufferedItemCount(100);
    }

    private <T> List<T> query(SqlQuerySpec query, CosmosQueryRequestOptions options, Class<T> type) {
        return database.getContainer("readings").queryItems(query, options, type).stream().toList();
    }

    private <T> List<T> query(String text, Class<T> type) {
        return query(new SqlQuerySpec(text), inParallel(), type);
    }

    private static List<String> ids(List<JsonNode> rows) {
        return rows.stream().map(row -> row.get("id").asText()).toList();
    }

    private void sample7QueryByKey() {
        CosmosContainer readings = createContainer(new CosmosContainerProperties("readings", "/deviceId"));
        readings().forEach(readings::createItem);
        SqlQuerySpec query = new SqlQuerySpec(
                "SELECT * FROM root WHERE root[\"metricType\"] = @type AND root[\"deviceId\"] = @device",
                new SqlParameter("@type", "Temperature"), new SqlParameter("@device", "XMS-0001"));
        same(6, query(query, new CosmosQueryRequestOptions(), JsonNode.class).size());
        same(6, query(query, new CosmosQueryRequestOptions().setPartitionKey(key("XMS-0001")), JsonNode.class).size());
    }

    private void sample8QueryAcrossPartitions() {
        List<Integer> values = query(HOT_ONES, JsonNode.class).stream()
                .map(row -> row.get("metricValue").asInt()).sorted().toList();
        same(hotValues(), values);
    }

    private void sample9QueryInOrderInParallel() {
        SqlQuerySpec query = new SqlQuerySpec(HOT_ONES + " ORDER BY root[\"metricValue\"]");
        List<JsonNode> parallel = query(query, inParallel(), JsonNode.class);
        same(hotValues(), parallel.stream().map(row -> row.get("metricValue").asInt()).toList());
        CosmosQueryRequestOptions serial = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(0);
        same(ids(parallel), ids(query(query, serial, JsonNode.class)));
    }

    private void sample10ExecuteStoredProcedure() {
        String name = "SetLatestStateAcrossReadings";
        String ours = "XMS-001-FE24C";
        String older = "XMS-001-FE24B";
        CosmosScripts scripts = container.getScripts();
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties(name, script(name)));
        for (String reading : List.of(ours, older)) {
            container.createItem(item(reading, "deviceId", "XMS-0001").put("metricType", "Temperature").put("isLatest", true));
        }
        Function<String, String> execute = key -> scripts.getStoredProcedure(name)
                .execute(List.of(ours), new CosmosStoredProcedureRequestOptions().setPartitionKey(key(key)))
                .getResponseAsString();
        // To the letter the article names a key that no device has.
        same("{\"latest\":null,\"outdated\":0}", execute.apply("XMS-001"));
        same("{\"latest\":\"" + ours + "\",\"outdated\":1}", execute.apply("XMS-0001"));
        same(true, read(ours, "XMS-0001").get("isLatest").asBoolean());
        same(false, read(older, "XMS-0001").get("isLatest").asBoolean());
        for (String reading : List.of(ours, older)) {
            container.deleteItem(reading, key("XMS-0001"), new CosmosItemRequestOptions());
        }
        scripts.getStoredProcedure(name).delete();
    }

    private static String script(String name) {
        try {
            return Files.readString(Path.of(System.getenv("ORRERY_SCRIPTS"), name + ".js"));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static final String EVERY_ID = "SELECT VALUE c.id FROM c";
    private static final String EVERY_ID_IN_ORDER = EVERY_ID + " ORDER BY c.metricValue";

    /** The readings as a client sees them whose requests are counted on their way. */
    private CosmosContainer readingsBehind(Gauge gauge) {
        // A server that is discovered would be asked without a way through the gauge.
        CosmosClient counted = builder(gauge.endpoint(), key).endpointDiscoveryEnabled(false).buildClient();
        return counted.getDatabase(database.getId()).getContainer("readings");
    }

    private static List<String> inPages(CosmosContainer readings, String text, CosmosQueryRequestOptions options) {
        return readings.queryItems(text, options, String.class)
                .streamByPage(20).flatMap(page -> page.getResults().stream()).toList();
    }

    /** How many requests this SDK has under way at once; where it may decide, as many as there are processors. */
    private int atOnce(int degree) {
        int wanted = degree < 0 ? Runtime.getRuntime().availableProcessors() : Math.max(degree, 1);
        return Math.min(wanted, partitions);
    }

    private void noMoreRequestsAtOnceThanTheDegreeOfParallelism() {
        Gauge gauge = new Gauge(endpoint);
        CosmosContainer readings = readingsBehind(gauge);
        Gauge.Seen<List<String>> unset = gauge.watch(1, () -> inPages(readings, EVERY_ID, new CosmosQueryRequestOptions()));
        same(1, unset.most());
        same((long) partitions, unset.asked().stream().map(each -> each.split(" ")[0]).distinct().count());
        same(120, unset.result().size());
        List<String> inOrder = inPages(readings, EVERY_ID_IN_ORDER, new CosmosQueryRequestOptions());
        for (int degree : List.of(0, 1, 2, 3, 10, -1)) {
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(degree);
            Gauge.Seen<List<String>> seen = gauge.watch(atOnce(degree), () -> inPages(readings, EVERY_ID, options));
            check(seen.most() == atOnce(degree), seen.most(), "requests at once, degree", degree);
            same(unset.result(), seen.result());
            same(unset.asked(), seen.asked());
            same(inOrder, inPages(readings, EVERY_ID_IN_ORDER, options));
        }
    }

    private void theSameRequestsWhateverIsBuffered() {
        Gauge gauge = new Gauge(endpoint);
        CosmosContainer readings = readingsBehind(gauge);
        for (String text : List.of(EVERY_ID, EVERY_ID_IN_ORDER)) {
            Gauge.Seen<List<String>> unset = gauge.watch(1, () -> inPages(readings, text, new CosmosQueryRequestOptions()));
            same(120, unset.result().size());
            for (int buffered : List.of(-1, 1, 10, 1000)) {
                for (int degree : List.of(0, 2)) {
                    CosmosQueryRequestOptions options = new CosmosQueryRequestOptions()
                            .setMaxDegreeOfParallelism(degree).setMaxBufferedItemCount(buffered);
                    Gauge.Seen<List<String>> seen = gauge.watch(1, () -> inPages(readings, text, options));
                    same(unset.result(), seen.result());
                    same(unset.asked(), seen.asked());
                }
            }
        }
    }

    private void aggregatesGroupsAndPagesAcrossPartitions() {
        same(List.of(120), query("SELECT VALUE COUNT(1) FROM c", Integer.class));
        same(List.of("Humidity", "Temperature"),
                query("SELECT DISTINCT VALUE c.metricType FROM c", String.class).stream().sorted().toList());
        List<JsonNode> groups =
                query("SELECT c.metricType, COUNT(1) AS many FROM c GROUP BY c.metricType", JsonNode.class);
        same(List.of(60, 60), groups.stream().map(group -> group.get("many").asInt()).toList());
        List<String> byId = ids(readings().stream().map(each -> (JsonNode) each).toList()).stream().sorted().toList();
        same(byId.subList(30, 50), ids(query("SELECT c.id FROM c ORDER BY c.id OFFSET 30 LIMIT 20", JsonNode.class)));
        same(byId.subList(0, 7), ids(query("SELECT TOP 7 c.id FROM c ORDER BY c.id", JsonNode.class)));
    }

    private void upsertCreatesAndReplaces() {
        same(201, container.upsertItem(item("up", "deviceId", "u").put("n", 1)).getStatusCode());
        CosmosItemResponse<ObjectNode> second = container.upsertItem(item("up", "deviceId", "u").put("n", 2));
        same(200, second.getStatusCode());
        same(2, second.getItem().get("n").asInt());
    }

    private void sameIdUnderTwoKeys() {
        List.of("a", "b").forEach(value -> container.createItem(item("same", "deviceId", value)));
        List.of("a", "b").forEach(value -> same(value, read("same", value).get("deviceId").asText()));
    }

    private void everyTypeOfKey() {
        int n = 0;
        for (Object value : Arrays.asList("text", "", 1, -3.5, true, false, null, "ünï 🚀", "a/b\\c\"d")) {
            String id = "key" + n++;
            ObjectNode wanted = item(id, "deviceId", value);
            container.createItem(wanted, key(value), null);
            same(wanted.get("deviceId"), read(id, value).get("deviceId"));
        }
        container.createItem(JSON.createObjectNode().put("id", "none"), PartitionKey.NONE, null);
        same("none", container.readItem("none", PartitionKey.NONE, JsonNode.class).getItem().get("id").asText());
    }

    private void oddIds() {
        for (String id : List.of("with space", "plus+", "per%cent", "quote'\"", "ünï", "semi;colon", "a.b", "(1)")) {
            container.upsertItem(item(id, "deviceId", "odd"));
            same(id, read(id, "odd").get("id").asText());
            container.deleteItem(id, key("odd"), null);
        }
    }

    private void etagsGuardWritesAndReads() {
        ObjectNode guarded = item("guarded", "deviceId", "e").put("n", 1);
        String first = container.createItem(guarded).getETag();
        CosmosItemRequestOptions seen = new CosmosItemRequestOptions().setIfMatchETag(first);
        String second = container.replaceItem(guarded.put("n", 2), "guarded", key("e"), seen).getETag();
        refused(412, () -> container.replaceItem(guarded.put("n", 3), "guarded", key("e"), seen));
        refused(412, () -> container.deleteItem("guarded", key("e"), seen));
        same(2, read("guarded", "e").get("n").asInt());
        CosmosItemRequestOptions known = new CosmosItemRequestOptions().setIfNoneMatchETag(second);
        same(304, container.readItem("guarded", key("e"), known, JsonNode.class).getStatusCode());
    }

    private void noContentWhenNotWanted() {
        CosmosItemRequestOptions quiet = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        CosmosItemResponse<ObjectNode> answer = container.upsertItem(item("quiet", "deviceId", "q"), quiet);
        check(answer.getItem() == null && answer.getETag() != null, "a body that nobody asked for");
    }

    private void patchEveryOperation() {
        ObjectNode before = item("p", "deviceId", "p").put("n", 1).put("gone", 1).put("from", 7);
        container.createItem(before.set("list", JSON.createArrayNode().add(1).add(3)));
        CosmosPatchOperations every = CosmosPatchOperations.create()
                .add("/list/1", 2).set("/new", List.of("deep")).replace("/n", 5)
                .remove("/gone").increment("/n", 2.5).move("/from", "/to");
        JsonNode patched = container.patchItem("p", key("p"), every, JsonNode.class).getItem();
        same("[1,2,3]", patched.get("list").toString());
        same("[\"deep\"]", patched.get("new").toString());
        check(patched.get("n").asDouble() == 7.5 && patched.get("to").asInt() == 7, patched);
        check(!patched.has("gone") && !patched.has("from"), patched);

        CosmosPatchOperations zero = CosmosPatchOperations.create().set("/n", 0);
        CosmosPatchItemRequestOptions wrong = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n = 1");
        refused(412, () -> container.patchItem("p", key("p"), zero, wrong, JsonNode.class));
        CosmosPatchItemRequestOptions right = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n = 7.5");
        same(0, container.patchItem("p", key("p"), zero, right, JsonNode.class).getItem().get("n").asInt());
        refused(404, () -> container.patchItem("nothing", key("p"), zero, JsonNode.class));
        for (CosmosPatchOperations bad : List.of(
                CosmosPatchOperations.create().set("/deviceId", "q"), CosmosPatchOperations.create().remove("/nothing"))) {
            refused(400, () -> container.patchItem("p", key("p"), bad, JsonNode.class));
        }
    }

    private void batchIsAllOrNothing() {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("batch"));
        batch.createItemOperation(item("b1", "deviceId", "batch").put("n", 1));
        batch.upsertItemOperation(item("b2", "deviceId", "batch"));
        batch.replaceItemOperation("b2", item("b2", "deviceId", "batch"));
        batch.patchItemOperation("b1", CosmosPatchOperations.create().increment("/n", 1));
        batch.readItemOperation("b1");
        batch.deleteItemOperation("b2");
        CosmosBatchResponse done = container.executeCosmosBatch(batch);
        same(List.of(201, 201, 200, 200, 200, 204), statuses(done));
        same(2, done.getResults().get(4).getItem(JsonNode.class).get("n").asInt());

        CosmosBatch again = CosmosBatch.createCosmosBatch(key("batch"));
        again.createItemOperation(item("b3", "deviceId", "batch"));
        again.createItemOperation(item("b1", "deviceId", "batch"));
        CosmosBatchResponse failed = container.executeCosmosBatch(again);
        check(!failed.isSuccessStatusCode(), "a batch with a conflict succeeded");
        same(List.of(424, 409), statuses(failed));
        refused(404, () -> read("b3", "batch"));
    }

    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(each -> each.getStatusCode()).toList();
    }

    private void bulk() {
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < 60; n++) {
            String value = "bulk " + n % 11;
            operations.add(CosmosBulkOperations.getCreateItemOperation(item("bulk" + n, "deviceId", value), key(value)));
        }
        int created = 0;
        for (CosmosBulkOperationResponse<Object> each : container.executeBulkOperations(operations)) {
            check(each.getException() == null, each.getException());
            same(201, each.getResponse().getStatusCode());
            created++;
        }
        same(60, created);
        same("bulk13", read("bulk13", "bulk 2").get("id").asText());
    }

    /** One item for each key, which the SDK reads without a query. */
    private void readMany() {
        List<CosmosItemIdentity> one = List.of(new CosmosItemIdentity(key("bulk 2"), "bulk13"));
        same("bulk13", container.readMany(one, JsonNode.class).getResults().get(0).get("id").asText());
        List<CosmosItemIdentity> many = new ArrayList<>();
        for (int n = 0; n < 30; n++) {
            many.add(new CosmosItemIdentity(key("bulk " + n % 11), "bulk" + n));
        }
        same(30, container.readMany(many, JsonNode.class).getResults().size());
    }

    private void wrongItemsAreRefused() {
        refused(413, () -> container.createItem(item("large", "deviceId", "x").put("text", "x".repeat(2 << 20))));
        refused(400, () -> container.createItem(item("", "deviceId", "x")));
        refused(400, () -> container.createItem(item("ttl", "deviceId", "x").put("ttl", 0)));
        same(1001, refused(400, () -> container.createItem(item("elsewhere", "deviceId", "y"), key("x"), null)).getSubStatusCode());
    }

    private void hierarchicalKeys() {
        PartitionKeyDefinition definition = new PartitionKeyDefinition()
                .setPaths(List.of("/tenant", "/user", "/session"))
                .setKind(PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
        CosmosContainer tree = createContainer(new CosmosContainerProperties("tree", definition));
        tree.createItem(item("1", "tenant", "t").put("user", "u").put("session", 7));
        PartitionKey full = new PartitionKeyBuilder().add("t").add("u").add(7).build();
        same("u", tree.readItem("1", full, JsonNode.class).getItem().get("user").asText());
        PartitionKey other = new PartitionKeyBuilder().add("t").add("v").add(7).build();
        refused(404, () -> tree.readItem("1", other, JsonNode.class));
    }

    private void timeToLive() {
        CosmosContainer mortal = createContainer(
                new CosmosContainerProperties("mortal", "/pk").setDefaultTimeToLiveInSeconds(3600));
        CosmosContainerProperties read = mortal.read().getProperties();
        same(3600, read.getDefaultTimeToLiveInSeconds());
        same(-1, mortal.replace(read.setDefaultTimeToLiveInSeconds(-1)).getProperties().getDefaultTimeToLiveInSeconds());
        refused(400, () -> mortal.replace(read.setDefaultTimeToLiveInSeconds(0)));
        mortal.createItem(item("lasting", "pk", "a"));
        mortal.createItem(item("brief", "pk", "a").put("ttl", 1));
        refused(404, () -> readUntilRefused(mortal, "brief"));
        same("lasting", mortal.readItem("lasting", key("a"), JsonNode.class).getItem().get("id").asText());
    }

    private static void readUntilRefused(CosmosContainer container, String id) {
        Instant deadline = Instant.now().plus(Duration.ofMinutes(1));
        while (Instant.now().isBefore(deadline)) {
            container.readItem(id, key("a"), JsonNode.class);
            try {
                Thread.sleep(100);
            } catch (InterruptedException stopped) {
                throw new IllegalStateException(stopped);
            }
        }
    }

    private void containersLiveAndChange() {
        UniqueKeyPolicy unique = new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))));
        CosmosContainer life = createContainer(new CosmosContainerProperties("life", "/pk").setUniqueKeyPolicy(unique));
        life.createItem(item("1", "pk", "a").put("email", "x"));
        refused(409, () -> life.createItem(item("2", "pk", "a").put("email", "x")));
        life.createItem(item("2", "pk", "b").put("email", "x"));
        CosmosContainerProperties changed = life.read().getProperties();
        changed.getIndexingPolicy().setExcludedPaths(List.of(new ExcludedPath("/email/?")));
        CosmosContainerProperties replaced = life.replace(changed).getProperties();
        check(replaced.getIndexingPolicy().getExcludedPaths().stream().anyMatch(path -> path.getPath().equals("/email/?")),
                "the indexing policy was not replaced");
        check(listed("life"), "not listed");
        life.delete();
        check(!listed("life"), "still listed");
        refused(404, life::read);
    }

    private boolean listed(String id) {
        return database.readAllContainers().stream().anyMatch(each -> each.getId().equals(id));
    }

    private void databasesAreListed() {
        check(client.readAllDatabases().stream().anyMatch(each -> each.getId().equals(database.getId())), "not listed");
    }

    private void headersTellTheTruth() {
        CosmosItemResponse<ObjectNode> first = container.upsertItem(item("h", "deviceId", "h"));
        CosmosItemResponse<ObjectNode> second = container.upsertItem(item("h", "deviceId", "h"));
        check(first.getRequestCharge() > 1, "a charge of", first.getRequestCharge());
        check(lsn(first) > 0 && lsn(second) > lsn(first), "LSN", lsn(first), "then", lsn(second));
    }

    private static long lsn(CosmosItemResponse<?> response) {
        String token = response.getSessionToken();
        return Long.parseLong(token.substring(token.indexOf('#') + 1));
    }

    private void throughputIsReadAndReplaced() {
        same(throughput, container.readThroughput().getProperties().getManualThroughput());
        container.replaceThroughput(ThroughputProperties.createManualThroughput(throughput + 100));
        same(throughput + 100, container.readThroughput().getProperties().getManualThroughput());
        refused(400, () -> container.replaceThroughput(ThroughputProperties.createManualThroughput(450)));
    }

    private void autoscaleIsReadAndReplaced() {
        CosmosContainerProperties properties = new CosmosContainerProperties("scaling", "/pk");
        database.createContainer(properties, ThroughputProperties.createAutoscaledThroughput(5000));
        CosmosContainer scaling = database.getContainer("scaling");
        same(5000, scaling.readThroughput().getProperties().getAutoscaleMaxThroughput());
        scaling.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(7000));
        same(7000, scaling.readThroughput().getProperties().getAutoscaleMaxThroughput());
    }

    private void usersAndScriptsAreKept() {
        database.createUser(new CosmosUserProperties().setId("someone"));
        CosmosUser user = database.getUser("someone");
        same("someone", user.read().getProperties().getId());
        user.delete();
        refused(404, user::read);
        CosmosScripts scripts = container.getScripts();
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties("sp", "function () {}"));
        same("function () {}", scripts.getStoredProcedure("sp").read().getProperties().getBody());
        same(1L, scripts.readAllStoredProcedures().stream().count());
        scripts.getStoredProcedure("sp").delete();
    }

    /** The SDK asks for the account when it is built, and wraps the refusal. */
    private void wrongKeysAreRefused() {
        try (CosmosClient stranger = builder(endpoint, "d3Jvbmcgd3Jvbmcgd3Jvbmc=").buildClient()) {
            check(false, "let in", stranger);
        } catch (RuntimeException refusal) {
            check(refusal.getMessage().contains("\"statusCode\":401"), refusal);
        }
    }

    private void whatWasWrittenStays() {
        CosmosContainer kept = createContainer(new CosmosContainerProperties("kept", "/pk"));
        for (int n = 0; n < KEPT; n++) {
            kept.createItem(item("" + n, "pk", "" + n % 7).put("n", n));
        }
    }

    private void verifyAfterRestart() {
        CosmosContainer kept = database.getContainer("kept");
        for (int n = 0; n < KEPT; n++) {
            same(n, kept.readItem("" + n, key("" + n % 7), JsonNode.class).getItem().get("n").asInt());
        }
        same(throughput + 100, container.readThroughput().getProperties().getManualThroughput());
    }

    private List<Case> cases() {
        return List.of(
                new Case("sample1CreateDatabase", this::sample1CreateDatabase),
                new Case("sample2CreateContainerWithKeyAndThroughput", this::sample2CreateContainerWithKeyAndThroughput),
                new Case("sample3CreateItem", this::sample3CreateItem),
                new Case("sample4ReadByKeyAndId", this::sample4ReadByKeyAndId),
                new Case("sample5Replace", this::sample5Replace),
                new Case("sample6Delete", this::sample6Delete),
                new Case("sample7QueryByKey", this::sample7QueryByKey),
                new Case("sample8QueryAcrossPartitions", this::sample8QueryAcrossPartitions),
                new Case("sample9QueryInOrderInParallel", this::sample9QueryInOrderInParallel),
                new Case("sample10ExecuteStoredProcedure", this::sample10ExecuteStoredProcedure),
                new Case("a8_no_more_requests_at_once_than_the_degree", this::noMoreRequestsAtOnceThanTheDegreeOfParallelism),
                new Case("a9_the_same_requests_whatever_is_buffered", this::theSameRequestsWhateverIsBuffered),
                new Case("aggregatesGroupsAndPagesAcrossPartitions", this::aggregatesGroupsAndPagesAcrossPartitions),
                new Case("upsertCreatesAndReplaces", this::upsertCreatesAndReplaces),
                new Case("sameIdUnderTwoKeys", this::sameIdUnderTwoKeys),
                new Case("everyTypeOfKey", this::everyTypeOfKey),
                new Case("oddIds", this::oddIds),
                new Case("etagsGuardWritesAndReads", this::etagsGuardWritesAndReads),
                new Case("noContentWhenNotWanted", this::noContentWhenNotWanted),
                new Case("patchEveryOperation", this::patchEveryOperation),
                new Case("batchIsAllOrNothing", this::batchIsAllOrNothing),
                new Case("bulk", this::bulk),
                new Case("readMany", this::readMany),
                new Case("wrongItemsAreRefused", this::wrongItemsAreRefused),
                new Case("hierarchicalKeys", this::hierarchicalKeys),
                new Case("timeToLive", this::timeToLive),
                new Case("containersLiveAndChange", this::containersLiveAndChange),
                new Case("databasesAreListed", this::databasesAreListed),
                new Case("headersTellTheTruth", this::headersTellTheTruth),
                new Case("throughputIsReadAndReplaced", this::throughputIsReadAndReplaced),
                new Case("autoscaleIsReadAndReplaced", this::autoscaleIsReadAndReplaced),
                new Case("usersAndScriptsAreKept", this::usersAndScriptsAreKept),
                new Case("wrongKeysAreRefused", this::wrongKeysAreRefused),
                new Case("whatWasWrittenStays", this::whatWasWrittenStays));
    }

    private int run(List<Case> cases) {
        int failures = 0;
        for (Case each : cases) {
            try {
                each.run.run();
                System.out.println("ok " + each.name);
            } catch (RuntimeException | AssertionError failure) {
                failures++;
                String why = failure.toString().replace('\n', ' ');
                System.out.println("FAILED " + each.name + ": " + why.substring(0, Math.min(400, why.length())));
            }
        }
        System.out.println(cases.size() - failures + " passed, " + failures + " failed");
        return failures;
    }

    public static void main(String[] arguments) {
        Conformance world = new Conformance(arguments[0], arguments[1], Integer.parseInt(arguments[2]));
        boolean verify = arguments.length > 3 && arguments[3].equals("verify");
        List<Case> verifying = List.of(
                new Case("verifyAfterRestart", world::verifyAfterRestart),
                new Case("verifyChangeFeedAfterRestart", world.changes::verifyAfterRestart),
                new Case("verifyAllVersionsAfterRestart", world.versions::verifyAfterRestart),
                new Case("verifyOrderAfterRestart", world.order::verifyAfterRestart));
        List<Case> writing = new ArrayList<>(world.cases());
        writing.addAll(world.changes.cases());
        writing.addAll(world.versions.cases());
        writing.addAll(world.parity.cases());
        writing.addAll(world.order.cases());
        int failures = world.run(verify ? verifying : writing);
        // Closing the client waits for its threads for seconds; the process ends them.
        System.exit(failures == 0 ? 0 : 1);
    }
}
