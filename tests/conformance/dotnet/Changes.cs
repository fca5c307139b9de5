using System.Collections.Concurrent;
using System.Net;
using Microsoft.Azure.Cosmos;

namespace Orrery.Conformance;

/// <summary>The change feed, pulled and pushed.</summary>
internal static class Changes
{
    internal static readonly Case[] Cases = Case.All(
        FromTheBeginning, FromNowAndOn, FromAPointInTime, OfOneKey, OfFeedRanges, PulledThroughASplit,
        AProcessorTellsEverything, AProcessorGoesOnThroughASplit, TheEstimatorKnowsWhatIsLeft);

    /// <summary>Enough for every partition to have one of them.</summary>
    private const int Keys = 47;
    private static readonly TimeSpan Patience = TimeSpan.FromMinutes(1);

    private static async Task Write(Container container, int first, int count, int version = 0)
    {
        foreach (var n in Enumerable.Range(first, count))
        {
            await container.UpsertItemAsync(new Item($"{n}", $"key {n % Keys}", version));
        }
    }

    /// <summary>What is new, and where to go on.</summary>
    internal static async Task<(List<Item> Changes, string Position)> Pull(Container container, ChangeFeedStartFrom start, int size = 7)
    {
        var options = new ChangeFeedRequestOptions { PageSizeHint = size };
        using var pages = container.GetChangeFeedIterator<Item>(start, ChangeFeedMode.LatestVersion, options);
        var changes = new List<Item>();
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

    private static IEnumerable<string> Ids(IEnumerable<Item> changes) => changes.Select(each => $"{each.id} at {each.n}").Order();

    private static IEnumerable<string> Expected(int first, int count, int version = 0) =>
        Enumerable.Range(first, count).Select(n => $"{n} at {version}").Order();

    private static async Task FromTheBeginning(World world)
    {
        var container = await world.NewContainer("changes");
        await Write(container, 0, 40);
        await Write(container, 0, 10, 1);
        var (changes, position) = await Pull(container, ChangeFeedStartFrom.Beginning());
        Check.SameAll(Expected(0, 10, 1).Concat(Expected(10, 30)).Order(), Ids(changes));
        await Write(container, 40, 5);
        using var client = world.NewClient();
        var again = client.GetContainer(world.Database.Id, "changes");
        (changes, position) = await Pull(again, ChangeFeedStartFrom.ContinuationToken(position));
        Check.SameAll(Expected(40, 5), Ids(changes));
        Check.Same(0, (await Pull(again, ChangeFeedStartFrom.ContinuationToken(position))).Changes.Count);
    }

    private static async Task FromNowAndOn(World world)
    {
        var container = world.Database.GetContainer("changes");
        var (changes, position) = await Pull(container, ChangeFeedStartFrom.Now());
        Check.Same(0, changes.Count);
        await Write(container, 5, 10, 2);
        (changes, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
        Check.SameAll(Expected(5, 10, 2), Ids(changes));
    }

    private static async Task FromAPointInTime(World world)
    {
        var container = await world.NewContainer("since");
        await Write(container, 0, 10);
        // Times of changes are whole seconds.
        await Task.Delay(2100);
        var moment = DateTime.UtcNow.AddSeconds(-1);
        await Write(container, 10, 10);
        var (changes, _) = await Pull(container, ChangeFeedStartFrom.Time(moment));
        Check.SameAll(Expected(10, 10), Ids(changes));
        await container.DeleteContainerAsync();
    }

    private static async Task OfOneKey(World world)
    {
        var container = world.Database.GetContainer("changes");
        foreach (var n in Enumerable.Range(0, 5))
        {
            await container.UpsertItemAsync(new Item($"one {n}", "key 3"));
        }
        var key = FeedRange.FromPartitionKey(new PartitionKey("key 3"));
        var (changes, position) = await Pull(container, ChangeFeedStartFrom.Beginning(key), 2);
        Check.That(changes.Count >= 5 && changes.All(each => each.pk == "key 3"), "changes of other keys");
        await Write(container, 300, Keys);
        (changes, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
        Check.Same("key 3", changes.Single().pk);
    }

    private static async Task OfFeedRanges(World world)
    {
        var container = world.Database.GetContainer("changes");
        var whole = (await Pull(container, ChangeFeedStartFrom.Beginning())).Changes;
        var parts = new List<Item>();
        foreach (var range in await container.GetFeedRangesAsync())
        {
            parts.AddRange((await Pull(container, ChangeFeedStartFrom.Beginning(range), 4)).Changes);
        }
        Check.SameAll(Ids(whole), Ids(parts));
    }

    /// <summary>More throughput than the partitions can have makes the server split them all.</summary>
    private static Task Split(World world, Container container) =>
        container.ReplaceThroughputAsync((10_000 * world.Partitions) + 1000);

    private static async Task<bool> HasSplit(World world, string container)
    {
        using var client = world.NewClient();
        return (await client.GetContainer(world.Database.Id, container).GetFeedRangesAsync()).Count > world.Partitions;
    }

    private static async Task PulledThroughASplit(World world)
    {
        var container = await world.NewContainer("splitting", throughput: 6000 * world.Partitions);
        var (_, position) = await Pull(container, ChangeFeedStartFrom.Now());
        await Split(world, container);
        var deadline = DateTime.UtcNow + Patience;
        for (var (round, after) = (0, 0); after < 2; round++)
        {
            Check.That(DateTime.UtcNow < deadline, "no split");
            await Write(container, round * Keys, Keys);
            (var changes, position) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(position));
            Check.SameAll(Expected(round * Keys, Keys), Ids(changes));
            after += await HasSplit(world, "splitting") ? 1 : 0;
        }
        await container.DeleteContainerAsync();
    }

    /// <summary>A processor, and what it was told.</summary>
    private sealed class Told
    {
        internal Told(Container container, Container leases, string instance)
        {
            Processor = container.GetChangeFeedProcessorBuilder<Item>(container.Id, Take)
                .WithInstanceName(instance).WithLeaseContainer(leases)
                .WithStartTime(DateTime.MinValue.ToUniversalTime()).WithPollInterval(TimeSpan.FromMilliseconds(100))
                .WithLeaseConfiguration(TimeSpan.FromSeconds(1), TimeSpan.FromSeconds(3), TimeSpan.FromSeconds(1))
                .Build();
        }

        internal ChangeFeedProcessor Processor { get; }

        private ConcurrentQueue<Item> Items { get; } = [];

        private Task Take(IReadOnlyCollection<Item> changes, CancellationToken stopped)
        {
            foreach (var change in changes)
            {
                Items.Enqueue(change);
            }
            return Task.CompletedTask;
        }

        /// <summary>Until all of them were told; some may be told twice.</summary>
        internal async Task Wait(IEnumerable<string> expected)
        {
            var (missing, deadline) = (expected.ToHashSet(), DateTime.UtcNow + Patience);
            while (!missing.IsSubsetOf(Ids(Items)))
            {
                Check.That(DateTime.UtcNow < deadline, $"not told of {string.Join(", ", missing.Except(Ids(Items)).Take(5))}");
                await Task.Delay(50);
            }
        }
    }

    private static async Task AProcessorTellsEverything(World world)
    {
        var container = await world.NewContainer("processed");
        var leases = await world.NewContainer("leases", "/id", 400);
        await Write(container, 0, 2 * Keys);
        var told = new Told(container, leases, "one");
        await told.Processor.StartAsync();
        await told.Wait(Expected(0, 2 * Keys));
        await Write(container, 200, 10);
        await told.Wait(Expected(200, 10));
        await told.Processor.StopAsync();
        await Write(container, 300, 10);
        // Another instance goes on from the leases.
        var next = new Told(container, leases, "two");
        await next.Processor.StartAsync();
        await next.Wait(Expected(300, 10));
        // What was told is noted in the leases a moment later.
        var deadline = DateTime.UtcNow + Patience;
        while (await Left(world) > 0)
        {
            Check.That(DateTime.UtcNow < deadline, "the leases stay behind");
            await Task.Delay(50);
        }
        await next.Processor.StopAsync();
    }

    private static async Task AProcessorGoesOnThroughASplit(World world)
    {
        var container = await world.NewContainer("dividing", throughput: 6000 * world.Partitions);
        var told = new Told(container, world.Database.GetContainer("leases"), "one");
        await told.Processor.StartAsync();
        await Write(container, 0, 20);
        await told.Wait(Expected(0, 20));
        await Split(world, container);
        var deadline = DateTime.UtcNow + Patience;
        while (!await HasSplit(world, "dividing"))
        {
            Check.That(DateTime.UtcNow < deadline, "no split");
            await Task.Delay(100);
        }
        await Write(container, 20, 30);
        await told.Wait(Expected(20, 30));
        await told.Processor.StopAsync();
        await container.DeleteContainerAsync();
    }

    /// <summary>What no processor has told yet, by the leases.</summary>
    private static async Task<long> Left(World world)
    {
        var container = world.Database.GetContainer("processed");
        var estimator = container.GetChangeFeedEstimator(container.Id, world.Database.GetContainer("leases"));
        using var pages = estimator.GetCurrentStateIterator();
        return (await pages.All()).Sum(each => each.EstimatedLag);
    }

    private static async Task TheEstimatorKnowsWhatIsLeft(World world)
    {
        Check.Same(0, await Left(world));
        await Write(world.Database.GetContainer("processed"), 100, 12);
        Check.Same(12, await Left(world));
    }
}
