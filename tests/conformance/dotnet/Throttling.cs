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
        // Each costs a good part of a second's throughput, or more, and the next one comes at once.
        var text = new string('x', 100_000);
        CosmosException? refusal = null;
        for (var n = 0; n < 200 && refusal == null; n++)
        {
            refusal = await Try(container, new Item($"{n}", "a", n, text));
        }
        Check.That(refusal != null, "nothing was refused");
        Check.That(refusal!.StatusCode == HttpStatusCode.TooManyRequests && refusal.RetryAfter > TimeSpan.Zero, "not with 429");
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
