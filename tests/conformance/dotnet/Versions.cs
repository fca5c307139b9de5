using System.Collections.Concurrent;
using System.Net;
using Microsoft.Azure.Cosmos;

namespace Orrery.Conformance;

/// <summary>All versions and deletes, pulled and pushed.</summary>
internal static class Versions
{
    internal static readonly Case[] Cases = Case.All(
        FromNowOn, OfOneKeyAndOfFeedRanges, ExpiryIsToldAsSuch, AProcessorTellsEveryOperation);

    private const int Keys = 47;
    private static readonly TimeSpan Patience = TimeSpan.FromMinutes(1);

    private static async Task<Container> NewContainer(World world, string name, int? ttl = null)
    {
        var properties = new ContainerProperties(name, "/pk")
        {
            ChangeFeedPolicy = new ChangeFeedPolicy { FullFidelityRetention = TimeSpan.FromMinutes(10) },
            DefaultTimeToLive = ttl,
        };
        Container container = await world.Database.CreateContainerAsync(properties, world.Throughput);
        var read = (await container.ReadContainerAsync()).Resource;
        Check.Same(TimeSpan.FromMinutes(10), read.ChangeFeedPolicy.FullFidelityRetention);
        return container;
    }

    /// <summary>Creates items, replaces each and deletes every third; says what a feed must tell.</summary>
    private static async Task<List<string>> Write(Container container, int first, int count)
    {
        var story = new List<string>();
        foreach (var n in Enumerable.Range(first, count))
        {
            var key = $"key {n % Keys}";
            await container.CreateItemAsync(new Item($"{n}", key, 1));
            await container.ReplaceItemAsync(new Item($"{n}", key, 2), $"{n}", new PartitionKey(key));
            story.AddRange([$"{n}: Create 1", $"{n}: Replace 2"]);
            if (n % 3 == 0)
            {
                await container.DeleteItemAsync<Item>($"{n}", new PartitionKey(key));
                story.Add($"{n}: Delete 2");
            }
        }
        return story;
    }

    private static string Told(ChangeFeedItem<Item> change)
    {
        var metadata = change.Metadata;
        if (metadata.OperationType != ChangeFeedOperationType.Delete)
        {
            Check.That(change.Previous is null, "an image of before");
            return $"{change.Current.id}: {metadata.OperationType} {change.Current.n}";
        }
        Check.Same(change.Previous.id, metadata.Id);
        Check.Same(change.Previous.pk, metadata.PartitionKey["pk"]);
        Check.That(change.Current?.id is null && metadata.PreviousLsn < metadata.Lsn, "a delete");
        return $"{change.Previous.id}: Delete {change.Previous.n}";
    }

    private static async Task<(List<ChangeFeedItem<Item>> Changes, string Position)> Pull(Container container, ChangeFeedStartFrom start)
    {
        var options = new ChangeFeedRequestOptions { PageSizeHint = 7 };
        using var pages = container.GetChangeFeedIterator<ChangeFeedItem<Item>>(start, ChangeFeedMode.AllVersionsAndDeletes, options);
        var changes = new List<ChangeFeedItem<Item>>();
        while (true)
        {
            var page = await pages.ReadNextAsync();
            if (page.StatusCode == HttpStatusCode.NotModified)
            {
                return (changes, page.ContinuationToken);
            }
            changes.AddRange(page);
        }
    }

    /// <summary>The order is that of each item; items of several partitions have none.</summary>
    private static IEnumerable<string> ByItem(IEnumerable<string> story) => story.OrderBy(each => each.Split(':')[0], StringComparer.Ordinal);

    private static async Task FromNowOn(World world)
    {
        var container = await NewContainer(world, "versions");
        await Write(container, 0, 20);
        var (changes, position) = await Pull(container, ChangeFeedStartFrom.Now());
        Check.Same(0, changes.Count);
        foreach (var first in new[] { 100, 200 })
        {
            var expected = await Write(container, first, 40);
            (changes, position) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
            Check.SameAll(ByItem(expected), ByItem(changes.Select(Told)));
        }
        (changes, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
        Check.Same(0, changes.Count);
    }

    private static async Task OfOneKeyAndOfFeedRanges(World world)
    {
        var container = world.Database.GetContainer("versions");
        var (_, ofKey) = await Pull(container, ChangeFeedStartFrom.Now(FeedRange.FromPartitionKey(new PartitionKey("key 3"))));
        var ofRanges = new List<string>();
        foreach (var range in await container.GetFeedRangesAsync())
        {
            ofRanges.Add((await Pull(container, ChangeFeedStartFrom.Now(range))).Position);
        }
        var expected = await Write(container, 1000, 2 * Keys);
        var (changes, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(ofKey));
        Check.SameAll(expected.Where(each => int.Parse(each.Split(':')[0]) % Keys == 3), changes.Select(Told));
        var parts = new List<string>();
        foreach (var position in ofRanges)
        {
            parts.AddRange((await Pull(container, ChangeFeedStartFrom.ContinuationToken(position))).Changes.Select(Told));
        }
        Check.SameAll(ByItem(expected), ByItem(parts));
    }

    private static async Task ExpiryIsToldAsSuch(World world)
    {
        var container = await NewContainer(world, "expiringVersions", 1);
        var (_, position) = await Pull(container, ChangeFeedStartFrom.Now());
        await container.CreateItemAsync(new Item("short", "a"));
        var (all, deadline) = (new List<ChangeFeedItem<Item>>(), DateTime.UtcNow + Patience);
        while (all.Count < 2)
        {
            Check.That(DateTime.UtcNow < deadline, "not expired");
            await Task.Delay(200);
            (var changes, position) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
            all.AddRange(changes);
        }
        Check.That(all[1].Metadata is { OperationType: ChangeFeedOperationType.Delete, IsTimeToLiveExpired: true }, "not told as such");
    }

    private static async Task AProcessorTellsEveryOperation(World world)
    {
        var container = await NewContainer(world, "processedVersions");
        var leases = await world.NewContainer("leasesOfVersions", "/id", 400);
        var told = new ConcurrentQueue<string>();
        ChangeFeedProcessor Processor(string instance) => container
            .GetChangeFeedProcessorBuilderWithAllVersionsAndDeletes<Item>("versions", (_, changes, _) =>
            {
                changes.ToList().ForEach(change => told.Enqueue(Told(change)));
                return Task.CompletedTask;
            })
            .WithInstanceName(instance).WithLeaseContainer(leases).WithPollInterval(TimeSpan.FromMilliseconds(100))
            .WithLeaseConfiguration(TimeSpan.FromSeconds(1), TimeSpan.FromSeconds(3), TimeSpan.FromSeconds(1))
            .Build();
        async Task Wait(IEnumerable<string> expected)
        {
            var (missing, end) = (expected.ToHashSet(), DateTime.UtcNow + Patience);
            while (!missing.IsSubsetOf(told))
            {
                Check.That(DateTime.UtcNow < end, $"not told of {string.Join(", ", missing.Except(told).Take(5))}");
                await Task.Delay(50);
            }
        }
        var first = Processor("one");
        await first.StartAsync();
        // It begins with what is written after its first look at each range, and does not say when that was.
        var waiting = Enumerable.Range(0, Keys).ToHashSet();
        var deadline = DateTime.UtcNow + Patience;
        for (var round = 100; waiting.Count > 0; round++)
        {
            Check.That(DateTime.UtcNow < deadline, "it does not begin");
            foreach (var key in waiting)
            {
                await container.CreateItemAsync(new Item($"{(round * Keys) + key}", $"key {key}"));
            }
            await Task.Delay(300);
            waiting.RemoveWhere(key => told.Contains($"{(round * Keys) + key}: Create 0"));
        }
        await Wait(await Write(container, 0, 2 * Keys));
        await first.StopAsync();
        var meanwhile = await Write(container, 2 * Keys, 20);
        var next = Processor("two");
        await next.StartAsync();
        await Wait(meanwhile);
        await next.StopAsync();
    }
}
