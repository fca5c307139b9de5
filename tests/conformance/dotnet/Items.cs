using System.Net;
using System.Text;
using System.Text.Json.Serialization;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>One item at a time, in every way that the SDK has for it.</summary>
internal static class Items
{
    internal static readonly Case[] Cases = Case.All(
        CreateReadReplaceUpsertDelete, Streams, SystemTextJson, EtagsGuardWritesAndReads, NoContentWhenNotWanted,
        EveryTypeOfKey, OddIds, ReadMany, HierarchicalKeys, FeedRanges, TimeToLive, DiagnosticsTellWhatHappened,
        SessionTokensGoOn, LargeItems, WrongItemsAreRefused);

    private static readonly PartitionKey A = new("a");

    private static async Task CreateReadReplaceUpsertDelete(World world)
    {
        var created = await world.Container.CreateItemAsync(new Item("1", "a", 1));
        Check.Same(HttpStatusCode.Created, created.StatusCode);
        Check.That(created.RequestCharge > 1 && created.ETag.Length > 2 && created.ActivityId.Length == 36, "headers are missing");
        await Check.Refused(HttpStatusCode.Conflict, () => world.Container.CreateItemAsync(new Item("1", "a"), A));
        Check.Same(1, (await world.Container.ReadItemAsync<Item>("1", A)).Resource.n);
        await Check.Refused(HttpStatusCode.NotFound, () => world.Container.ReadItemAsync<Item>("1", new PartitionKey("b")));
        Check.Same(2, (await world.Container.ReplaceItemAsync(new Item("1", "a", 2), "1", A)).Resource.n);
        await Check.Refused(HttpStatusCode.NotFound, () => world.Container.ReplaceItemAsync(new Item("none", "a"), "none"));
        Check.Same(HttpStatusCode.OK, (await world.Container.UpsertItemAsync(new Item("1", "a", 3))).StatusCode);
        Check.Same(HttpStatusCode.Created, (await world.Container.UpsertItemAsync(new Item("2", "a"))).StatusCode);
        Check.Same(HttpStatusCode.NoContent, (await world.Container.DeleteItemAsync<Item>("2", A)).StatusCode);
        await Check.Refused(HttpStatusCode.NotFound, () => world.Container.DeleteItemAsync<Item>("2", A));
        await world.Container.DeleteItemAsync<Item>("1", A);
    }

    private static MemoryStream Json(string text) => new(Encoding.UTF8.GetBytes(text));

    private static async Task Streams(World world)
    {
        using var created = await world.Container.CreateItemStreamAsync(Json("""{"id":"stream","pk":"a","n":1}"""), A);
        Check.Same(HttpStatusCode.Created, created.StatusCode);
        using var again = await world.Container.CreateItemStreamAsync(Json("""{"id":"stream","pk":"a"}"""), A);
        Check.Same(HttpStatusCode.Conflict, again.StatusCode);
        Check.That(again.ErrorMessage.Contains("already exists"), again.ErrorMessage);
        using var read = await world.Container.ReadItemStreamAsync("stream", A);
        using var reader = new StreamReader(read.Content);
        Check.Same(1, (int)JObject.Parse(await reader.ReadToEndAsync())["n"]!);
        using var missing = await world.Container.ReadItemStreamAsync("none", A);
        Check.Same(HttpStatusCode.NotFound, missing.StatusCode);
        using var deleted = await world.Container.DeleteItemStreamAsync("stream", A);
        Check.Same(HttpStatusCode.NoContent, deleted.StatusCode);
        using var broken = await world.Container.CreateItemStreamAsync(Json("""{"id":"broken","""), A);
        Check.Same(HttpStatusCode.BadRequest, broken.StatusCode);
    }

    private sealed class Named
    {
        [JsonPropertyName("id")]
        public required string Id { get; init; }

        [JsonPropertyName("pk")]
        public required string Key { get; init; }

        [JsonPropertyName("taken at")]
        public DateTimeOffset Taken { get; init; }

        public Dictionary<string, double?> Values { get; init; } = [];
    }

    private static async Task SystemTextJson(World world)
    {
        using var client = world.NewClient(options => options.UseSystemTextJsonSerializerWithOptions = new());
        var container = client.GetContainer(world.Database.Id, world.Container.Id);
        var taken = DateTimeOffset.UnixEpoch.AddDays(20_000);
        var item = new Named { Id = "json", Key = "a", Taken = taken, Values = new() { ["é 日 😀"] = 0.1, ["none"] = null } };
        await container.UpsertItemAsync(item);
        Named read = await container.ReadItemAsync<Named>("json", A);
        Check.Same(taken, read.Taken);
        Check.Same(0.1, read.Values["é 日 😀"]);
        var rows = await container.GetItemQueryIterator<Named>("SELECT * FROM c WHERE c.id = 'json' AND c[\"taken at\"] > '2020'").All();
        Check.Same("json", rows.Single().Id);
        await container.DeleteItemAsync<Named>("json", A);
    }

    private static async Task EtagsGuardWritesAndReads(World world)
    {
        var first = await world.Container.CreateItemAsync(new Item("guarded", "a", 1));
        var guarded = new ItemRequestOptions { IfMatchEtag = first.ETag };
        await world.Container.ReplaceItemAsync(new Item("guarded", "a", 2), "guarded", A, guarded);
        await Check.Refused(HttpStatusCode.PreconditionFailed, () => world.Container.UpsertItemAsync(new Item("guarded", "a", 3), A, guarded));
        await Check.Refused(HttpStatusCode.PreconditionFailed, () => world.Container.DeleteItemAsync<Item>("guarded", A, guarded));
        var read = await world.Container.ReadItemAsync<Item>("guarded", A);
        Check.Same(read.ETag, read.Resource._etag);
        var unchanged = new ItemRequestOptions { IfNoneMatchEtag = read.ETag };
        using var same = await world.Container.ReadItemStreamAsync("guarded", A, unchanged);
        Check.Same(HttpStatusCode.NotModified, same.StatusCode);
        await world.Container.DeleteItemAsync<Item>("guarded", A, new ItemRequestOptions { IfMatchEtag = read.ETag });
    }

    private static async Task NoContentWhenNotWanted(World world)
    {
        var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
        var silent = await world.Container.UpsertItemAsync(new Item("silent", "a", 4), A, options);
        Check.That(silent.Resource is null && silent.ETag.Length > 2, "an item came back");
        Check.Same(4, (await world.Container.ReadItemAsync<Item>("silent", A, options)).Resource.n);
        await world.Container.DeleteItemAsync<Item>("silent", A, options);
    }

    private static async Task EveryTypeOfKey(World world)
    {
        (JToken?, PartitionKey)[] keys =
        [
            ("text", new("text")), ("", new("")), ("ünï 😀", new("ünï 😀")), ("a/b\\c\"d", new("a/b\\c\"d")),
            (new string('x', 500), new(new string('x', 500))), (1, new(1)), (1.5, new(1.5)), (-3, new(-3)), (0, new(0)),
            (true, new(true)), (false, new(false)),
            (JValue.CreateNull(), PartitionKey.Null), (null, PartitionKey.None),
        ];
        foreach (var (value, key) in keys)
        {
            var item = new JObject { ["id"] = "typed" };
            if (value is not null)
            {
                item["pk"] = value;
            }
            await world.Container.UpsertItemAsync(item, key);
            // Without a key the SDK takes it from the item.
            await world.Container.UpsertItemAsync(item);
            JObject read = await world.Container.ReadItemAsync<JObject>("typed", key);
            Check.Same(value?.ToString(), read["pk"]?.ToString());
            var options = new QueryRequestOptions { PartitionKey = key };
            Check.Same(1, (await world.Container.Query<JObject>("SELECT * FROM c WHERE c.id = 'typed'", options)).Count);
            await world.Container.DeleteItemAsync<JObject>("typed", key);
        }
    }

    private static async Task OddIds(World world)
    {
        string[] ids = ["with space", "plus+", "quote'\"", "ünï 😀", "semi;colon", "a.b", "(1)", "&=", new('x', 255)];
        foreach (var id in ids)
        {
            await world.Container.UpsertItemAsync(new Item(id, "a"));
            Check.Same(id, (await world.Container.ReadItemAsync<Item>(id, A)).Resource.id);
            await world.Container.ReplaceItemAsync(new Item(id, "a", 1), id);
            await world.Container.DeleteItemAsync<Item>(id, A);
        }
    }

    private static async Task ReadMany(World world)
    {
        var keys = Enumerable.Range(0, 40).Select(n => ($"many {n}", new PartitionKey($"key {n % 9}"))).ToList();
        foreach (var (id, n) in keys.Select((each, n) => (each.Item1, n)))
        {
            await world.Container.UpsertItemAsync(new Item(id, $"key {n % 9}", n));
        }
        FeedResponse<Item> found = await world.Container.ReadManyItemsAsync<Item>([.. keys, ("none", A)]);
        Check.SameAll(Enumerable.Range(0, 40), found.Select(each => each.n).Order());
        Check.That(found.RequestCharge > 0, "it cost nothing");
        using var stream = await world.Container.ReadManyItemsStreamAsync(keys[..3]);
        Check.Same(HttpStatusCode.OK, stream.StatusCode);
    }

    private sealed record Session(string id, string tenant, string user, int session);

    private static async Task HierarchicalKeys(World world)
    {
        var properties = new ContainerProperties("tree", (IReadOnlyList<string>)["/tenant", "/user", "/session"]);
        var tree = await world.NewContainer(properties);
        static PartitionKey Key(string tenant, string user, int session) =>
            new PartitionKeyBuilder().Add(tenant).Add(user).Add(session).Build();
        foreach (var n in Enumerable.Range(0, 12))
        {
            await tree.CreateItemAsync(new Session($"{n}", $"t{n % 2}", $"u{n % 3}", n));
        }
        Check.Same("u1", (await tree.ReadItemAsync<Session>("1", Key("t1", "u1", 1))).Resource.user);
        await Check.Refused(HttpStatusCode.NotFound, () => tree.ReadItemAsync<Session>("1", Key("t1", "u2", 1)));
        var tenant = new QueryRequestOptions { PartitionKey = new PartitionKeyBuilder().Add("t1").Build() };
        Check.SameAll([1, 3, 5, 7, 9, 11], (await tree.Query<int>("SELECT VALUE c.session FROM c", tenant)).Order());
        var user = new QueryRequestOptions { PartitionKey = new PartitionKeyBuilder().Add("t1").Add("u0").Build() };
        Check.SameAll([3, 9], (await tree.Query<int>("SELECT VALUE c.session FROM c", user)).Order());
        await tree.DeleteContainerAsync();
    }

    private static async Task FeedRanges(World world)
    {
        var ranges = await world.Container.GetFeedRangesAsync();
        Check.Same(world.Partitions, ranges.Count);
        var whole = (await world.Container.Query<string>("SELECT VALUE c.id FROM c WHERE c.pk LIKE 'key %'")).Order();
        var parts = new List<string>();
        foreach (var range in ranges)
        {
            var query = new QueryDefinition("SELECT VALUE c.id FROM c WHERE c.pk LIKE 'key %'");
            using var pages = world.Container.GetItemQueryIterator<string>(FeedRange.FromJsonString(range.ToJsonString()), query);
            parts.AddRange(await pages.All());
        }
        Check.SameAll(whole, parts.Order());
    }

    private static async Task TimeToLive(World world)
    {
        var mortal = await world.NewContainer(new ContainerProperties("mortal", "/pk") { DefaultTimeToLive = -1 });
        await mortal.CreateItemAsync(new JObject { ["id"] = "brief", ["pk"] = "a", ["ttl"] = 1 });
        await mortal.CreateItemAsync(new JObject { ["id"] = "lasting", ["pk"] = "a" });
        var deadline = DateTime.UtcNow.AddMinutes(1);
        while ((await mortal.ReadItemStreamAsync("brief", A)).IsSuccessStatusCode)
        {
            Check.That(DateTime.UtcNow < deadline, "it does not expire");
            await Task.Delay(100);
        }
        Check.SameAll(["lasting"], await mortal.Query<string>("SELECT VALUE c.id FROM c"));
        await mortal.DeleteContainerAsync();
    }

    private static async Task DiagnosticsTellWhatHappened(World world)
    {
        var written = await world.Container.UpsertItemAsync(new Item("told", "a"));
        Check.That(written.Diagnostics.ToString().Contains("Created"), "no status");
        Check.That(written.Diagnostics.GetClientElapsedTime() > TimeSpan.Zero, "it took no time");
        Check.That(written.Headers["x-ms-session-token"].Contains('#'), "no session token");
        await world.Container.DeleteItemAsync<Item>("told", A);
    }

    private static async Task SessionTokensGoOn(World world)
    {
        var first = await world.Container.UpsertItemAsync(new Item("session", "a", 1));
        var second = await world.Container.UpsertItemAsync(new Item("session", "a", 2));
        Check.That(Lsn(second.Headers.Session) > Lsn(first.Headers.Session), "the token does not go on");
        using var client = world.NewClient();
        var container = client.GetContainer(world.Database.Id, world.Container.Id);
        var options = new ItemRequestOptions { SessionToken = second.Headers.Session };
        Check.Same(2, (await container.ReadItemAsync<Item>("session", A, options)).Resource.n);
        await container.DeleteItemAsync<Item>("session", A);
    }

    private static long Lsn(string token) => long.Parse(token[(token.LastIndexOf('#') + 1)..]);

    private static async Task LargeItems(World world)
    {
        var text = new string('x', 1_900_000);
        await world.Container.UpsertItemAsync(new Item("large", "a", text: text));
        Check.Same(text, (await world.Container.ReadItemAsync<Item>("large", A)).Resource.text);
        await world.Container.DeleteItemAsync<Item>("large", A);
        var larger = new Item("large", "a", text: text + text);
        await Check.Refused(HttpStatusCode.RequestEntityTooLarge, () => world.Container.UpsertItemAsync(larger));
    }

    private static async Task WrongItemsAreRefused(World world)
    {
        await Check.Refused(HttpStatusCode.BadRequest, () => world.Container.CreateItemAsync(new JObject { ["id"] = "", ["pk"] = "a" }));
        await Check.Refused(HttpStatusCode.BadRequest, () => world.Container.CreateItemAsync(new JObject { ["id"] = "t", ["pk"] = "a", ["ttl"] = 0 }));
        var elsewhere = await Check.Refused(HttpStatusCode.BadRequest, () => world.Container.CreateItemAsync(new Item("1", "b"), A));
        Check.Same(1001, elsewhere.SubStatusCode);
    }
}
