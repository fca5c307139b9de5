import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchRequestOptions;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeType;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** What a program notices only when it moves to the service or from it: cases of {@link Conformance}. */
final class Parity {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SORTED = 75;
    /** What many small pages cost in a second; a container with that still has one partition. */
    private static final int ONE_PARTITION_MAX = 6000;
    private static final PartitionKey BATCH = new PartitionKey("batch");

    private final Supplier<CosmosClientBuilder> builder;
    private final CosmosDatabase database;
    private final CosmosContainer container;
    private final int throughput;

    Parity(Supplier<CosmosClientBuilder> builder, CosmosDatabase database, int throughput) {
        this.builder = builder;
        this.database = database;
        this.container = database.getContainer("coll");
        this.throughput = throughput;
    }

    private static ObjectNode item(String id, String key) {
        return JSON.createObjectNode().put("id", id).put("deviceId", key);
    }

    private CosmosContainer createContainer(String name, int throughput) {
        CosmosContainerProperties properties = new CosmosContainerProperties(name, "/deviceId");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(name);
    }

    private static void refused(int status, int substatus, Runnable request) {
        try {
            request.run();
        } catch (CosmosException refusal) {
            Conformance.same(status + "/" + substatus, refusal.getStatusCode() + "/" + refusal.getSubStatusCode());
            return;
        }
        throw new AssertionError("not refused with " + status);
    }

    private void numbersHaveOneForm() {
        container.createItem(item("numbers", "n").put("whole", 5.0).put("hundred", 1e2).put("part", 0.1)
                .put("exact", 9007199254740993L).put("large", new BigInteger("12345678901234567890")));
        JsonNode read = container.readItem("numbers", new PartitionKey("n"), JsonNode.class).getItem();
        Conformance.check(read.get("whole").isInt() && read.get("hundred").isInt(), read);
        Conformance.same(9007199254740993L, read.get("exact").asLong());
        Conformance.check(read.get("large").isDouble() && read.get("part").isDouble(), read);
        Conformance.same(1.2345678901234567e19, read.get("large").asDouble());
    }

    private void idsWithSlashes() {
        PartitionKey odd = new PartitionKey("odd");
        for (String id : List.of("a/b", "a\\b", "a?b")) {
            container.createItem(item(id, "odd"));
            SqlQuerySpec query = new SqlQuerySpec("SELECT VALUE c.id FROM c WHERE c.id = @id", new SqlParameter("@id", id));
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(odd);
            Conformance.same(List.of(id), container.queryItems(query, options, String.class).stream().toList());
        }
        // An id with a slash this SDK does not ask for, and of a backslash it makes an escape.
        Conformance.same("a?b", container.readItem("a?b", odd, JsonNode.class).getItem().get("id").asText());
        refused(404, 0, () -> container.readItem("b?a", odd, JsonNode.class));
    }

    private void aParameterThatNobodyGaveIsUndefined() {
        String text = "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(@type) OR c.metricType = @type";
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();
        Conformance.same(120L, database.getContainer("readings").queryItems(text, options, String.class).stream().count());
    }

    /** Every type there is to sort, with ties in all of them; every fifth item has no value. */
    private static ObjectNode sortable(int number) {
        ObjectNode item = item("" + number, "key " + number % 9);
        return switch (number % 5) {
            case 1 -> item.putNull("n");
            case 2 -> item.put("n", number % 10 == 2);
            case 3 -> item.put("n", number / 10);
            case 4 -> item.put("n", "text " + number / 20);
            default -> item;
        };
    }

    private static final List<JsonNodeType> TYPES =
            List.of(JsonNodeType.MISSING, JsonNodeType.NULL, JsonNodeType.BOOLEAN, JsonNodeType.NUMBER, JsonNodeType.STRING);

    /** Of two values of one type; of others there is nothing to compare but their types. */
    private static int compare(JsonNode a, JsonNode b) {
        int byType = TYPES.indexOf(a.getNodeType()) - TYPES.indexOf(b.getNodeType());
        if (byType != 0) {
            return byType;
        }
        return a.isNumber() ? Double.compare(a.asDouble(), b.asDouble()) : a.asText().compareTo(b.asText());
    }

    /** All rows of a query, each page by a new iterator that is given the token of the page before. */
    private static List<JsonNode> resumed(CosmosContainer container, String text, int size) {
        List<JsonNode> rows = new ArrayList<>();
        String token = null;
        do {
            FeedResponse<JsonNode> page = container.queryItems(text, new CosmosQueryRequestOptions(), JsonNode.class)
                    .iterableByPage(token, size).iterator().next();
            rows.addAll(page.getResults());
            token = page.getContinuationToken();
        } while (token != null);
        return rows;
    }

    private void rowsInOrderGoOnFromTheirToken() {
        CosmosContainer sorted = createContainer("sorted", Math.max(throughput, ONE_PARTITION_MAX));
        IntStream.range(0, SORTED).forEach(number -> sorted.createItem(sortable(number)));
        Comparator<JsonNode> ascending = (a, b) -> compare(a.path("n"), b.path("n"));
        for (Comparator<JsonNode> order : List.of(ascending, ascending.reversed())) {
            String text = "SELECT c.id, c.n FROM c ORDER BY c.n " + (order == ascending ? "ASC" : "DESC");
            for (int size : List.of(1, 7, 100)) {
                List<JsonNode> rows = resumed(sorted, text, size);
                List<Integer> ids = rows.stream().map(row -> row.get("id").asInt()).sorted().toList();
                Conformance.same(IntStream.range(0, SORTED).boxed().toList(), ids);
                Conformance.same(rows.stream().sorted(order).toList(), rows);
            }
        }
    }

    private static List<Boolean> bodies(CosmosBatchResponse response) {
        return response.getResults().stream().map(each -> each.getItem(JsonNode.class) != null).toList();
    }

    private void noBodiesOfBatchesWhenNotWanted() {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(BATCH);
        batch.upsertItemOperation(item("quiet", "batch"));
        batch.readItemOperation("quiet");
        Conformance.same(List.of(true, true), bodies(container.executeCosmosBatch(batch)));
        try (CosmosClient client = builder.get().contentResponseOnWriteEnabled(false).buildClient()) {
            CosmosContainer quiet = client.getDatabase(database.getId()).getContainer("coll");
            Conformance.same(List.of(false, true), bodies(quiet.executeCosmosBatch(batch)));
            List<CosmosItemOperation> bulk =
                    List.of(CosmosBulkOperations.getUpsertItemOperation(item("quiet", "batch"), BATCH));
            for (CosmosBulkOperationResponse<Object> each : quiet.executeBulkOperations(bulk)) {
                Conformance.check(each.getResponse().getItem(JsonNode.class) == null, "a body that nobody asked for");
            }
        }
    }

    private void readsOfABatchCanBeConditional() {
        String etag = container.upsertItem(item("known", "batch")).getETag();
        CosmosBatch batch = CosmosBatch.createCosmosBatch(BATCH);
        batch.readItemOperation("known", new CosmosBatchItemRequestOptions().setIfNoneMatchETag(etag));
        Conformance.same(304, container.executeCosmosBatch(batch).getResults().get(0).getStatusCode());
    }

    private void aBatchThatHasSeenMoreIsToldSo() {
        String token = container.upsertItem(item("known", "batch")).getSessionToken();
        CosmosBatch batch = CosmosBatch.createCosmosBatch(BATCH);
        batch.readItemOperation("known");
        CosmosBatchRequestOptions ahead = new CosmosBatchRequestOptions()
                .setSessionToken(token.substring(0, token.indexOf('#')) + "#999999999");
        refused(404, 1002, () -> {
            CosmosBatchResponse response = container.executeCosmosBatch(batch, ahead);
            Conformance.same(404, response.getStatusCode());
        });
    }

    private void bulkOfADroppedContainerFindsNothing() {
        CosmosContainer dropped = createContainer("dropped", throughput);
        dropped.createItem(item("1", "batch"));
        try (CosmosClient other = builder.get().buildClient()) {
            other.getDatabase(database.getId()).getContainer("dropped").delete();
        }
        List<CosmosItemOperation> bulk = List.of(CosmosBulkOperations.getReadItemOperation("1", BATCH));
        for (CosmosBulkOperationResponse<Object> each : dropped.executeBulkOperations(bulk)) {
            Conformance.check(each.getException() instanceof CosmosException, each.getException());
            CosmosException refusal = (CosmosException) each.getException();
            Conformance.same(404, refusal.getStatusCode());
        }
    }

    /** Until the server speaks it, a client in direct mode is told how to leave it. */
    private void directModeIsExplained() {
        try (CosmosClient direct = builder.get().directMode().buildClient()) {
            direct.getDatabase(database.getId()).getContainer("coll").createItem(item("direct", "d"));
            throw new AssertionError("direct mode works");
        } catch (CosmosException refusal) {
            Conformance.check(refusal.getMessage().contains("gatewayMode()"), refusal.getStatusCode(), refusal.getShortMessage());
        }
    }

    List<Conformance.Case> cases() {
        return List.of(
                new Conformance.Case("numbersHaveOneForm", this::numbersHaveOneForm),
                new Conformance.Case("idsWithSlashes", this::idsWithSlashes),
                new Conformance.Case("aParameterThatNobodyGaveIsUndefined", this::aParameterThatNobodyGaveIsUndefined),
                new Conformance.Case("rowsInOrderGoOnFromTheirToken", this::rowsInOrderGoOnFromTheirToken),
                new Conformance.Case("noBodiesOfBatchesWhenNotWanted", this::noBodiesOfBatchesWhenNotWanted),
                new Conformance.Case("readsOfABatchCanBeConditional", this::readsOfABatchCanBeConditional),
                new Conformance.Case("aBatchThatHasSeenMoreIsToldSo", this::aBatchThatHasSeenMoreIsToldSo),
                new Conformance.Case("bulkOfADroppedContainerFindsNothing", this::bulkOfADroppedContainerFindsNothing),
                new Conformance.Case("directModeIsExplained", this::directModeIsExplained));
    }
}
