using System.Net;
using System.Text;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>Transactional batches, which the SDK sends in HybridRow.</summary>
internal static class Batches
{
    internal static readonly Case[] Cases = Case.All(
        EveryOperation, AllOrNothing, WhatFailedIsTold, EtagsInBatches, StreamsAndSilence, HierarchicalKeysInBatches,
        AHundredOperations, WrongBatchesAreRefused);

    private static readonly PartitionKey Key = new("batch");

    private static IEnumerable<HttpStatusCode> Statuses(TransactionalBatchResponse response) => response.Select(each => each.StatusCode);

    private static async Task EveryOperation(World world)
    {
        using var done = await world.Container.CreateTransactionalBatch(Key)
            .CreateItem(new Item("b1", "batch", 1))
            .UpsertItem(new Item("b2", "batch", 2))
            .ReplaceItem("b2", new Item("b2", "batch", 3))
            .PatchItem("b1", [PatchOperation.Increment("/n", 1)])
            .ReadItem("b1")
            .DeleteItem("b2")
            .ExecuteAsync();
        Check.That(done.IsSuccessStatusCode && done.Count == 6, $"{done.StatusCode}: {done.ErrorMessage}");
        Check.SameAll(
            [HttpStatusCode.Created, HttpStatusCode.Created, HttpStatusCode.OK, HttpStatusCode.OK, HttpStatusCode.OK, HttpStatusCode.NoContent],
            Statuses(done));
        var read = done.GetOperationResultAtIndex<Item>(4).Resource;
        Check.Same(2, read.n);
        Check.Same(done[3].ETag, read._etag);
        Check.That(done.RequestCharge > 10 && done.Headers.Session.Contains('#'), "headers are missing");
        Check.Same(2, (await world.Container.ReadItemAsync<Item>("b1", Key)).Resource.n);
    }

    private static async Task AllOrNothing(World world)
    {
        using var failed = await world.Container.CreateTransactionalBatch(Key)
            .CreateItem(new Item("b3", "batch"))
            .CreateItem(new Item("b1", "batch"))
            .DeleteItem("b1")
            .ExecuteAsync();
        Check.Same(HttpStatusCode.Conflict, failed.StatusCode);
        Check.SameAll([HttpStatusCode.FailedDependency, HttpStatusCode.Conflict, HttpStatusCode.FailedDependency], Statuses(failed));
        await Check.Refused(HttpStatusCode.NotFound, () => world.Container.ReadItemAsync<Item>("b3", Key));
    }

    private static async Task WhatFailedIsTold(World world)
    {
        (TransactionalBatch, HttpStatusCode, string)[] wrong =
        [
            (world.Container.CreateTransactionalBatch(Key).CreateItem(new Item("b1", "batch")), HttpStatusCode.Conflict, "already exists"),
            (world.Container.CreateTransactionalBatch(Key).ReadItem("none"), HttpStatusCode.NotFound, "Resource Not Found"),
            (world.Container.CreateTransactionalBatch(Key).DeleteItem("none"), HttpStatusCode.NotFound, "Resource Not Found"),
            (world.Container.CreateTransactionalBatch(Key).CreateItem(new Item("x", "other")), HttpStatusCode.BadRequest, "Partition key"),
            (world.Container.CreateTransactionalBatch(Key).CreateItem(new Item("", "batch")), HttpStatusCode.BadRequest, "id"),
        ];
        foreach (var (batch, status, message) in wrong)
        {
            using var response = await batch.ExecuteAsync();
            Check.Same(status, response.StatusCode);
            Check.That(response.ErrorMessage.Contains(message) && response.ErrorMessage.StartsWith("{\"Errors\":"), response.ErrorMessage);
        }
    }

    private static async Task EtagsInBatches(World world)
    {
        var read = await world.Container.ReadItemAsync<Item>("b1", Key);
        var stale = new TransactionalBatchItemRequestOptions { IfMatchEtag = "\"stale\"" };
        using var failed = await world.Container.CreateTransactionalBatch(Key)
            .UpsertItem(new Item("b4", "batch"))
            .ReplaceItem("b1", new Item("b1", "batch", 9), stale)
            .ExecuteAsync();
        Check.Same(HttpStatusCode.PreconditionFailed, failed.StatusCode);
        var current = new TransactionalBatchItemRequestOptions { IfMatchEtag = read.ETag };
        using var done = await world.Container.CreateTransactionalBatch(Key)
            .ReplaceItem("b1", new Item("b1", "batch", 9), current)
            .ReadItem("b1", new TransactionalBatchItemRequestOptions { IfNoneMatchEtag = "\"other\"" })
            .ExecuteAsync();
        Check.SameAll([HttpStatusCode.OK, HttpStatusCode.OK], Statuses(done));
        using var unchanged = await world.Container.CreateTransactionalBatch(Key)
            .ReadItem("b1", new TransactionalBatchItemRequestOptions { IfNoneMatchEtag = done[0].ETag })
            .ExecuteAsync();
        Check.Same(HttpStatusCode.NotModified, unchanged[0].StatusCode);
    }

    private static async Task StreamsAndSilence(World world)
    {
        static MemoryStream Json(string text) => new(Encoding.UTF8.GetBytes(text));
        var silent = new TransactionalBatchItemRequestOptions { EnableContentResponseOnWrite = false };
        using var done = await world.Container.CreateTransactionalBatch(Key)
            .CreateItemStream(Json("""{"id":"é 日 😀","pk":"batch","n":5}"""))
            .UpsertItemStream(Json("""{"id":"quiet","pk":"batch"}"""), silent)
            .ReadItem("é 日 😀")
            .ExecuteAsync();
        Check.That(done.IsSuccessStatusCode, done.ErrorMessage);
        using var reader = new StreamReader(done[2].ResourceStream);
        Check.Same(5, (int)JObject.Parse(await reader.ReadToEndAsync())["n"]!);
        Check.That(done[1].ResourceStream is null && done[1].ETag is not null, "an item came back");
        using var broken = await world.Container.CreateTransactionalBatch(Key).CreateItemStream(Json("""{"id":"br""")).ExecuteAsync();
        Check.Same(HttpStatusCode.BadRequest, broken.StatusCode);
    }

    private static async Task HierarchicalKeysInBatches(World world)
    {
        var tree = await world.NewContainer(new ContainerProperties("batch tree", (IReadOnlyList<string>)["/pk", "/text"]));
        var key = new PartitionKeyBuilder().Add("a").Add("é\"").Build();
        using var done = await tree.CreateTransactionalBatch(key)
            .CreateItem(new Item("1", "a", text: "é\"")).CreateItem(new Item("2", "a", text: "é\"")).ExecuteAsync();
        Check.That(done.IsSuccessStatusCode, done.ErrorMessage);
        Check.Same("2", (await tree.ReadItemAsync<Item>("2", key)).Resource.id);
        await tree.DeleteContainerAsync();
    }

    private static async Task AHundredOperations(World world)
    {
        TransactionalBatch Upserts(int count) => Enumerable.Range(0, count).Aggregate(
            world.Container.CreateTransactionalBatch(new PartitionKey("hundred")),
            (batch, n) => batch.UpsertItem(new Item($"{n}", "hundred", n)));
        using var done = await Upserts(100).ExecuteAsync();
        Check.That(done.IsSuccessStatusCode && done.Count == 100, done.ErrorMessage);
        Check.Same(77, done.GetOperationResultAtIndex<Item>(77).Resource.n);
        using var more = await Upserts(101).ExecuteAsync();
        Check.Same(HttpStatusCode.BadRequest, more.StatusCode);
        Check.That(more.ErrorMessage.Contains("more operations"), more.ErrorMessage);
    }

    private static async Task WrongBatchesAreRefused(World world)
    {
        var text = new string('x', 1_200_000);
        using var large = await world.Container.CreateTransactionalBatch(Key)
            .CreateItem(new Item("l1", "batch", text: text)).CreateItem(new Item("l2", "batch", text: text)).ExecuteAsync();
        Check.Same(HttpStatusCode.RequestEntityTooLarge, large.StatusCode);
        var nowhere = world.Database.GetContainer("nothing").CreateTransactionalBatch(Key);
        await Check.Refused(HttpStatusCode.NotFound, () => nowhere.ReadItem("1").ExecuteAsync());
    }
}
