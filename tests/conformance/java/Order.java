import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.util.CosmosPagedIterable;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Rows that nothing sorts: cases of {@link Conformance}. They come as their items were created: across the keys of a
 * physical partition, inside each key, and where the values that sort them are equal.
 */
final class Order {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** The ids, as they are created: neither they nor their keys are in any other order. */
    private static final String LETTERS = "mzakqcxbtehwdnyfuljrgp";
    private static final int KEYS = 5;
    /** What many small pages cost in a second; a container with that still has one partition. */
    private static final int ONE_PARTITION_MAX = 6000;

    private static final List<String> QUERIES = List.of("SELECT * FROM c", "SELECT * FROM c WHERE c.same = 1",
            "SELECT * FROM c WHERE c.code > 0", "SELECT * FROM c ORDER BY c.same");

    private final String endpoint;
    private final String key;
    private final CosmosDatabase database;

    Order(String endpoint, String key, CosmosDatabase database) {
        this.endpoint = endpoint;
        this.key = key;
        this.database = database;
    }

    private static String keyOf(int letter) {
        return "key " + LETTERS.indexOf(letter) * 3 % KEYS;
    }

    private static PartitionKey partition(int letter) {
        return new PartitionKey(keyOf(letter));
    }

    private static ObjectNode item(char letter, int version) {
        return JSON.createObjectNode().put("id", "" + letter).put("pk", keyOf(letter)).put("same", 1)
                .put("code", (int) letter).put("version", version);
    }

    private static String create(CosmosContainer container, String letters) {
        letters.chars().forEach(letter -> container.createItem(item((char) letter, 0)));
        return letters;
    }

    private static String only(String letters, IntPredicate holds) {
        return letters.chars().filter(holds)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    }

    private static String among(String letters, String others) {
        return only(letters, letter -> others.indexOf(letter) >= 0);
    }

    private static String ofKey(String letters, String key) {
        return only(letters, letter -> keyOf(letter).equals(key));
    }

    private CosmosContainer newContainer(String name) {
        CosmosContainerProperties properties = new CosmosContainerProperties(name, "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(ONE_PARTITION_MAX));
        return database.getContainer(name);
    }

    /** A way of reading, and the letters that it gave. */
    private record Seen(String way, String letters) {}

    private static String read(Stream<FeedResponse<JsonNode>> pages) {
        StringBuilder letters = new StringBuilder();
        pages.forEach(page -> page.getResults().forEach(row -> letters.append(row.get("id").asText())));
        return letters.toString();
    }

    /** Each page by an iterator of its own, which is given the token of the page before. */
    private static String resumed(Supplier<CosmosPagedIterable<JsonNode>> rows) {
        StringBuilder letters = new StringBuilder();
        String token = null;
        do {
            FeedResponse<JsonNode> page = rows.get().iterableByPage(token, 2).iterator().next();
            letters.append(read(Stream.of(page)));
            token = page.getContinuationToken();
        } while (token != null);
        return letters.toString();
    }

    /** In one page, in pages of two, and in pages that are resumed. */
    private static List<Seen> inPages(String way, Supplier<CosmosPagedIterable<JsonNode>> rows) {
        return List.of(new Seen(way, read(rows.get().streamByPage())),
                new Seen(way + " in pages", read(rows.get().streamByPage(2))),
                new Seen(way + ", resumed", resumed(rows)));
    }

    private static List<Seen> everyQuery(CosmosContainer container, Supplier<CosmosQueryRequestOptions> options) {
        return QUERIES.stream()
                .flatMap(text -> inPages(text, () -> container.queryItems(text, options.get(), JsonNode.class)).stream())
                .toList();
    }

    /** Each way of reading gave every item once, and those of each sequence in its order. */
    private static void check(List<Seen> seen, List<String> sequences) {
        String all = String.join("", sequences);
        for (Seen each : seen) {
            List<String> found = sequences.stream().map(sequence -> among(each.letters, sequence)).toList();
            Conformance.check(sequences.equals(found), each, "instead of", sequences);
            Conformance.check(each.letters.length() == all.chars().distinct().count(), each, "instead of", sequences);
        }
    }

    private static void check(CosmosContainer container, String... sequences) {
        check(everyQuery(container, () -> new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(10)), List.of(sequences));
    }

    /** This SDK lists only the items of one key. */
    private static void checkKey(CosmosContainer container, String letters, String key) {
        PartitionKey value = new PartitionKey(key);
        List<Seen> seen = new ArrayList<>(everyQuery(container, () -> new CosmosQueryRequestOptions().setPartitionKey(value)));
        seen.addAll(inPages("all items", () -> container.readAllItems(value, JsonNode.class)));
        check(seen, List.of(ofKey(letters, key)));
    }

    private void rowsComeAsTheirItemsWereCreated() {
        CosmosContainer container = newContainer("created");
        String letters = create(container, LETTERS.substring(0, 14));
        check(container, letters);
        checkKey(container, letters, "key 0");
        checkKey(container, letters, "key 3");
        // Whatever changes an item leaves it where it is.
        container.replaceItem(item('a', 1), "a", partition('a'), null);
        container.upsertItem(item('z', 1));
        container.patchItem("x", partition('x'), CosmosPatchOperations.create().set("/version", 1), JsonNode.class);
        check(container, letters);
        // An item that is deleted and created again is a new one.
        container.deleteItem("k", partition('k'), null);
        String changed = letters.replace("k", "") + create(container, "k");
        check(container, changed);
        checkKey(container, changed, keyOf('k'));
    }

    /** Changes a layout as an operator would, and gives back the ids of the new ranges. */
    private List<String> operate(String verb, ObjectNode body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint + "_orrery/" + verb))
                .header("Authorization", "Bearer " + key)
                .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                .build();
        try {
            HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            Conformance.check(answer.statusCode() == 200, verb, answer.body());
            return JSON.readTree(answer.body()).get("new").findValuesAsText("id");
        } catch (IOException | InterruptedException failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** The letters of each range, which must come in the same order among themselves. */
    private static String[] byRange(CosmosContainer container, String letters) {
        List<String> parts = new ArrayList<>();
        for (FeedRange range : container.getFeedRanges()) {
            List<Seen> seen = everyQuery(container, () -> new CosmosQueryRequestOptions().setFeedRange(range));
            parts.add(among(letters, seen.get(0).letters));
            check(seen, List.of(parts.get(parts.size() - 1)));
        }
        return parts.toArray(String[]::new);
    }

    private void rowsKeepTheirOrderThroughSplitsAndMerges() {
        CosmosContainer container = newContainer("moved");
        String link = "dbs/" + database.getId() + "/colls/moved";
        String letters = create(container, LETTERS.substring(0, 10));
        List<String> children = operate("split", JSON.createObjectNode().put("container", link).put("range", "0"));
        Conformance.same(2, byRange(container, letters).length);
        letters += create(container, LETTERS.substring(10, 16));
        String[] parts = byRange(container, letters);
        Conformance.check(parts.length == 2 && parts[0].length() > 3 && parts[1].length() > 3, (Object[]) parts);
        check(container, parts);
        ObjectNode merge = JSON.createObjectNode().put("container", link);
        merge.set("ranges", JSON.valueToTree(children));
        Conformance.same(1, operate("merge", merge).size());
        // A client that still knows the old ranges asks for them first, and learns of the new one.
        check(container, parts);
        String later = create(container, LETTERS.substring(16, 20));
        check(container, parts[0] + later, parts[1] + later);
        ObjectNode kept = JSON.createObjectNode().put("id", "order").put("deviceId", "order");
        database.getContainer("coll").upsertItem(kept.put("left", parts[0] + later).put("right", parts[1] + later));
    }

    List<Conformance.Case> cases() {
        return List.of(
                new Conformance.Case("rowsComeAsTheirItemsWereCreated", this::rowsComeAsTheirItemsWereCreated),
                new Conformance.Case(
                        "rowsKeepTheirOrderThroughSplitsAndMerges", this::rowsKeepTheirOrderThroughSplitsAndMerges));
    }

    void verifyAfterRestart() {
        CosmosContainer created = database.getContainer("created");
        check(created, LETTERS.substring(0, 14).replace("k", "") + "k" + create(created, LETTERS.substring(14, 16)));
        CosmosContainer moved = database.getContainer("moved");
        JsonNode kept = database.getContainer("coll").readItem("order", new PartitionKey("order"), JsonNode.class).getItem();
        String left = kept.get("left").asText();
        String right = kept.get("right").asText();
        String later = create(moved, LETTERS.substring(20));
        check(moved, left + later, right + later);
    }
}
