using Microsoft.Azure.Cosmos;

namespace Orrery.Conformance;

/// <summary>What is still there after a restart.</summary>
internal static class Kept
{
    internal static readonly Case[] Cases = Case.All(ItemsAreLeftBehind, APositionIsLeftBehind);

    internal static readonly Case[] Verifying = Case.All(ItemsAreStillThere, TheChangeFeedGoesOn, BatchesGoOn);

    private static async Task ItemsAreLeftBehind(World world)
    {
        var kept = await world.NewContainer("kept");
        await Task.WhenAll(Enumerable.Range(0, 50).Select(n => kept.CreateItemAsync(new Item($"{n}", $"{n % 7}", n))));
    }

    private static async Task APositionIsLeftBehind(World world)
    {
        var kept = world.Database.GetContainer("kept");
        var (changes, position) = await Changes.Pull(kept, ChangeFeedStartFrom.Beginning());
        Check.Same(50, changes.Count);
        await world.Container.UpsertItemAsync(new Item("position", "kept", text: position));
        await kept.UpsertItemAsync(new Item("later", "1"));
    }

    private static async Task ItemsAreStillThere(World world)
    {
        var kept = world.Database.GetContainer("kept");
        foreach (var n in Enumerable.Range(0, 50))
        {
            Check.Same(n, (await kept.ReadItemAsync<Item>($"{n}", new PartitionKey($"{n % 7}"))).Resource.n);
        }
        Check.SameAll(["9", "8", "7"], await kept.Query<string>("SELECT TOP 3 VALUE c.id FROM c WHERE c.n < 10 ORDER BY c.n DESC"));
        Check.Same(world.Throughput + 100, await world.Container.ReadThroughputAsync());
    }

    private static async Task TheChangeFeedGoesOn(World world)
    {
        var kept = world.Database.GetContainer("kept");
        var position = (await world.Container.ReadItemAsync<Item>("position", new PartitionKey("kept"))).Resource.text!;
        var (changes, _) = await Changes.Pull(kept, ChangeFeedStartFrom.ContinuationToken(position));
        Check.SameAll(["later"], changes.Select(each => each.id));
    }

    private static async Task BatchesGoOn(World world)
    {
        var kept = world.Database.GetContainer("kept");
        using var done = await kept.CreateTransactionalBatch(new PartitionKey("1"))
            .ReadItem("later").UpsertItem(new Item("after", "1")).DeleteItem("after").ExecuteAsync();
        Check.That(done.IsSuccessStatusCode, done.ErrorMessage);
    }
}
