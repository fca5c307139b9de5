using System.Net;
using Microsoft.Azure.Cosmos;

namespace Orrery.Conformance;

/// <summary>What happens when the throughput does not suffice.</summary>
internal static class Throttling
{
    internal static readonly Case[] Cases = Case.All(TooMuchIsRefusedAndPassesLater);

    private static async Task TooMuchIsRefusedAndPassesLater(World world)
    {
        await world.NewContainer("slow", throughput: 400);
        using var hasty = world.NewClient(options => options.MaxRetryAttemptsOnRateLimitedRequests = 0);
        var container = hasty.GetContainer(world.Database.Id, "slow");
        // Each costs more than the throughput of a second, so the machine may take its time.
        var text = new string('x', 100_000);
        var requests = Enumerable.Range(0, 30).Select(n => Try(container, new Item($"{n}", $"{n % 5}", n, text)));
        var refused = (await Task.WhenAll(requests)).OfType<CosmosException>().ToList();
        Check.That(refused.Count > 0, "nothing was refused");
        Check.That(refused.All(each => each.StatusCode == HttpStatusCode.TooManyRequests && each.RetryAfter > TimeSpan.Zero), "not with 429");
        using var patient = world.NewClient(options => options.MaxRetryAttemptsOnRateLimitedRequests = 100);
        await patient.GetContainer(world.Database.Id, "slow").UpsertItemAsync(new Item("last", "a", 1, text));
        await container.Database.GetContainer("slow").DeleteContainerAsync();
    }

    private static async Task<CosmosException?> Try(Container container, Item item)
    {
        try
        {
            await container.UpsertItemAsync(item);
            return null;
        }
        catch (CosmosException refusal)
        {
            return refusal;
        }
    }
}
