using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>
/// Many operations at once: with AllowBulkExecution the SDK sends those of one physical partition
/// together, in HybridRow.
/// </summary>
internal static class Bulk
{
    internal static readonly Case[] Cases = Case.All(
        ManyItems, EveryOperation, EachFailsForItself, EveryTypeOfKey, ItemsInBinary, ThrottledOperationsAreTriedAgain, ThroughASplit);

    private static CosmosClient Client(World world, TimeSpan? patience = null) => world.NewClient(options =>
    {
        options.AllowBulkExecution = true;
        options.MaxRetryAttemptsOnRateLimitedRequests = 1000;
        options.MaxRetryWaitTimeOnRateLimitedRequests = patience ?? TimeSpan.FromMinutes(2);
    });

    private static Item Numbered(int n) => new($"bulk {n}", $"key {n % 23}", n);

    private static async Task ManyItems(World world)
    {
        await world.NewContainer("bulk", throughput: 6000 * world.Partitions);
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "bulk");
        var created = await Task.WhenAll(Enumerable.Range(0, 500).Select(n => container.CreateItemAsync(Numbered(n))));
        Check.That(created.All(each => each.StatusCode == HttpStatusCode.Created && each.RequestCharge > 1 && each.ETag != null), "not created");
        Check.Same(500, (await container.Query<int>("SELECT VALUE COUNT(1) FROM c")).Single());
    }

    private static async Task EveryOperation(World world)
    {
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "bulk");
        static PartitionKey Key(int n) => new(Numbered(n).pk);
        var reads = Enumerable.Range(0, 50).Select(n => container.ReadItemAsync<Item>($"bulk {n}", Key(n)));
        var replaced = Enumerable.Range(50, 50).Select(n => container.ReplaceItemAsync(Numbered(n) with { n = -n }, $"bulk {n}"));
        var patched = Enumerable.Range(100, 50).Select(n => container.PatchItemAsync<Item>($"bulk {n}", Key(n), [PatchOperation.Set("/n", -n)]));
        var deleted = Enumerable.Range(150, 50).Select(n => container.DeleteItemAsync<Item>($"bulk {n}", Key(n)));
        var silent = new ItemRequestOptions { EnableContentResponseOnWrite = false };
        var upserted = Enumerable.Range(500, 50).Select(n => container.UpsertItemAsync(Numbered(n), Key(n), silent));
        var all = await Task.WhenAll([.. reads, .. replaced, .. patched, .. deleted, .. upserted]);
        Check.SameAll(Enumerable.Range(0, 50), all[..50].Select(each => each.Resource.n));
        Check.SameAll(Enumerable.Range(50, 100).Select(n => -n), all[50..150].Select(each => each.Resource.n));
        Check.That(all[150..200].All(each => each.StatusCode == HttpStatusCode.NoContent), "not deleted");
        Check.That(all[200..].All(each => each.StatusCode == HttpStatusCode.Created && each.Resource is null), "not upserted in silence");
        Check.Same(500, (await container.Query<int>("SELECT VALUE COUNT(1) FROM c")).Single());
    }

    private static async Task EachFailsForItself(World world)
    {
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "bulk");
        var stale = new ItemRequestOptions { IfMatchEtag = "\"stale\"" };
        Task[] requests =
        [
            container.CreateItemAsync(new Item("fresh", "key 1")),
            Check.Refused(HttpStatusCode.Conflict, () => container.CreateItemAsync(Numbered(1))),
            Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<Item>("none", new PartitionKey("key 1"))),
            Check.Refused(HttpStatusCode.PreconditionFailed, () => container.ReplaceItemAsync(Numbered(2), "bulk 2", requestOptions: stale)),
            Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new Item("1", "key 1"), new PartitionKey("key 2"))),
            Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new Item("", "key 1"))),
            Check.Refused(HttpStatusCode.BadRequest, () => container.PatchItemAsync<Item>("bulk 1", new PartitionKey("key 1"), [PatchOperation.Remove("/absent")])),
        ];
        await Task.WhenAll(requests);
        Check.Same("fresh", (await container.ReadItemAsync<Item>("fresh", new PartitionKey("key 1"))).Resource.id);
    }

    /// <summary>Each operation has its own key, as text in a column.</summary>
    private static async Task EveryTypeOfKey(World world)
    {
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "bulk");
        (JToken?, PartitionKey)[] keys =
        [
            ("é \"日\" 😀", new("é \"日\" 😀")), ("", new("")), (42, new(42)), (-0.5, new(-0.5)), (true, new(true)),
            (JValue.CreateNull(), PartitionKey.Null), (null, PartitionKey.None),
        ];
        async Task There(JToken? value, PartitionKey key)
        {
            var item = new JObject { ["id"] = "typed" };
            if (value is not null)
            {
                item["pk"] = value;
            }
            await container.CreateItemAsync(item, key);
            await container.ReadItemAsync<JObject>("typed", key);
            await container.DeleteItemAsync<JObject>("typed", key);
        }
        await Task.WhenAll(keys.Select(each => There(each.Item1, each.Item2)));
        var tree = new ContainerProperties("bulk tree", (IReadOnlyList<string>)["/pk", "/text"]);
        await world.NewContainer(tree);
        var hierarchical = client.GetContainer(world.Database.Id, tree.Id);
        var items = Enumerable.Range(0, 20).Select(n => new Item($"{n}", "a", n, $"{n % 3}"));
        await Task.WhenAll(items.Select(each => hierarchical.CreateItemAsync(each)));
        var key = new PartitionKeyBuilder().Add("a").Add("2").Build();
        Check.Same(17, (await hierarchical.ReadItemAsync<Item>("17", key)).Resource.n);
        await hierarchical.DeleteContainerAsync();
    }

    /// <summary>With this variable the SDK sends items of bulk requests in Cosmos binary.</summary>
    private static async Task ItemsInBinary(World world)
    {
        const string variable = "AZURE_COSMOS_BINARY_ENCODING_ENABLED";
        Environment.SetEnvironmentVariable(variable, "True");
        try
        {
            using var client = Client(world);
            var container = client.GetContainer(world.Database.Id, "bulk");
            JObject[] items = [.. Enumerable.Range(0, 40).Select(n => JObject.FromObject(new
            {
                id = $"binary {n}", pk = $"key {n % 23}", n, half = n + 0.5, text = "é 日 😀", list = new object?[] { null, true, "x" },
            }))];
            await Task.WhenAll(items.Select(each => container.CreateItemAsync(each, new PartitionKey((string)each["pk"]!))));
            foreach (var item in items[..5])
            {
                JObject read = await container.ReadItemAsync<JObject>((string)item["id"]!, new PartitionKey((string)item["pk"]!));
                foreach (var property in item.Properties())
                {
                    Check.That(JToken.DeepEquals(property.Value, read[property.Name]), $"{property} is {read[property.Name]}");
                }
            }
        }
        finally
        {
            Environment.SetEnvironmentVariable(variable, null);
        }
    }

    private static async Task ThrottledOperationsAreTriedAgain(World world)
    {
        await world.NewContainer("narrow", throughput: 400);
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "narrow");
        var upserts = Enumerable.Range(0, 250).Select(n => container.UpsertItemAsync(Numbered(n)));
        var done = await Task.WhenAll(upserts);
        Check.That(done.All(each => each.StatusCode == HttpStatusCode.Created), "not all were done");
        await container.DeleteContainerAsync();
    }

    /// <summary>More throughput than the partitions can have makes the server split them all.</summary>
    private static async Task ThroughASplit(World world)
    {
        using var client = Client(world);
        var container = client.GetContainer(world.Database.Id, "bulk");
        await container.ReplaceThroughputAsync((10_000 * world.Partitions) + 1000);
        var (number, deadline) = (1000, DateTime.UtcNow.AddMinutes(1));
        for (var after = 0; after < 3;)
        {
            Check.That(DateTime.UtcNow < deadline, "no split");
            await Task.WhenAll(Enumerable.Range(number, 60).Select(n => container.CreateItemAsync(Numbered(n))));
            number += 60;
            using var fresh = world.NewClient();
            var ranges = await fresh.GetContainer(world.Database.Id, "bulk").GetFeedRangesAsync();
            after += ranges.Count > world.Partitions ? 1 : 0;
        }
        Check.Same(number - 1000, (await container.Query<int>("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 1000")).Single());
        await container.DeleteContainerAsync();
    }
}
