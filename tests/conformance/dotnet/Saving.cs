using System.Net;
using System.Text;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>
/// What Entity Framework Core 11 does when it saves changes, by the calls it makes: a transactional
/// batch for the entities of each key, streams without content in the answers, etags as conditions;
/// a single change goes alone, and bulk is a choice.
/// </summary>
internal static class Saving
{
    internal static readonly Case[] Cases = Case.All(
        SeveralEntitiesOfOneKey, SeveralKeys, AConflictUndoesABatch, OneEntityGoesAlone, InBulk);

    private static readonly TransactionalBatchItemRequestOptions Silent = new() { EnableContentResponseOnWrite = false };

    private static Stream Entity(string id, string key, int n) =>
        new MemoryStream(Encoding.UTF8.GetBytes($$"""{"$type":"Order","id":"{{id}}","pk":"{{key}}","n":{{n}},"Lines":[{"Sku":"a"}]}"""));

    private static async Task SeveralEntitiesOfOneKey(World world)
    {
        using var added = await world.Container.CreateTransactionalBatch(new PartitionKey("save"))
            .CreateItemStream(Entity("s1", "save", 1), Silent)
            .CreateItemStream(Entity("s2", "save", 2), Silent)
            .CreateItemStream(Entity("s3", "save", 3), Silent)
            .ExecuteAsync();
        Check.That(added.IsSuccessStatusCode && added.All(each => each.ETag != null && each.ResourceStream is null), added.ErrorMessage);
        using var changed = await world.Container.CreateTransactionalBatch(new PartitionKey("save"))
            .ReplaceItemStream("s1", Entity("s1", "save", 10), IfMatch(added[0].ETag))
            .DeleteItem("s2", IfMatch(added[1].ETag))
            .CreateItemStream(Entity("s4", "save", 4), Silent)
            .ExecuteAsync();
        Check.SameAll([HttpStatusCode.OK, HttpStatusCode.NoContent, HttpStatusCode.Created], changed.Select(each => each.StatusCode));
        Check.SameAll([3, 4, 10], (await Saved(world, "save")).Order());
    }

    private static TransactionalBatchItemRequestOptions IfMatch(string etag) => new() { EnableContentResponseOnWrite = false, IfMatchEtag = etag };

    private static Task<List<int>> Saved(World world, string key) =>
        world.Container.Query<int>("SELECT VALUE c.n FROM c WHERE c[\"$type\"] = 'Order'", new QueryRequestOptions { PartitionKey = new PartitionKey(key) });

    private static async Task SeveralKeys(World world)
    {
        foreach (var key in new[] { "save a", "save b", "save c" })
        {
            var batch = world.Container.CreateTransactionalBatch(new PartitionKey(key));
            foreach (var n in Enumerable.Range(0, 5))
            {
                batch.CreateItemStream(Entity($"{n}", key, n), Silent);
            }
            using var done = await batch.ExecuteAsync();
            Check.That(done.IsSuccessStatusCode, done.ErrorMessage);
            Check.SameAll(Enumerable.Range(0, 5), (await Saved(world, key)).Order());
        }
    }

    private static async Task AConflictUndoesABatch(World world)
    {
        using var failed = await world.Container.CreateTransactionalBatch(new PartitionKey("save"))
            .CreateItemStream(Entity("s5", "save", 5), Silent)
            .ReplaceItemStream("s3", Entity("s3", "save", 30), IfMatch("\"somebody was here\""))
            .ExecuteAsync();
        Check.Same(HttpStatusCode.PreconditionFailed, failed.StatusCode);
        Check.That(failed.ErrorMessage.Contains("pre-condition"), failed.ErrorMessage);
        Check.SameAll([HttpStatusCode.FailedDependency, HttpStatusCode.PreconditionFailed], failed.Select(each => each.StatusCode));
        Check.SameAll([3, 4, 10], (await Saved(world, "save")).Order());
    }

    private static async Task OneEntityGoesAlone(World world)
    {
        var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
        using var created = await world.Container.CreateItemStreamAsync(Entity("alone", "save", 6), new PartitionKey("save"), options);
        Check.Same(HttpStatusCode.Created, created.StatusCode);
        options.IfMatchEtag = created.Headers.ETag;
        using var replaced = await world.Container.ReplaceItemStreamAsync(Entity("alone", "save", 7), "alone", new PartitionKey("save"), options);
        Check.Same(HttpStatusCode.OK, replaced.StatusCode);
        using var stale = await world.Container.DeleteItemStreamAsync("alone", new PartitionKey("save"), options);
        Check.Same(HttpStatusCode.PreconditionFailed, stale.StatusCode);
        options.IfMatchEtag = replaced.Headers.ETag;
        using var deleted = await world.Container.DeleteItemStreamAsync("alone", new PartitionKey("save"), options);
        Check.Same(HttpStatusCode.NoContent, deleted.StatusCode);
    }

    private static async Task InBulk(World world)
    {
        using var client = world.NewClient(options => options.AllowBulkExecution = true);
        var container = client.GetContainer(world.Database.Id, world.Container.Id);
        var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
        var saves = Enumerable.Range(0, 30).Select(async n =>
        {
            var key = $"save bulk {n % 4}";
            using var response = await container.CreateItemStreamAsync(Entity($"{n}", key, n), new PartitionKey(key), options);
            return (response.StatusCode, response.Headers.ETag);
        });
        var saved = await Task.WhenAll(saves);
        Check.That(saved.All(each => each.StatusCode == HttpStatusCode.Created && each.ETag != null), "not saved");
        options.IfMatchEtag = "\"stale\"";
        using var stale = await container.ReplaceItemStreamAsync(Entity("1", "save bulk 1", 0), "1", new PartitionKey("save bulk 1"), options);
        Check.Same(HttpStatusCode.PreconditionFailed, stale.StatusCode);
        Check.SameAll([1, 5, 9, 13, 17, 21, 25, 29], (await Saved(world, "save bulk 1")).Order());
    }
}
