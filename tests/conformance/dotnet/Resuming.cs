using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>
/// Ordered queries whose every page is read by a client that knows nothing but the token of the page
/// before, while somebody writes. ORRERY_RESUMES says how many; each has a seed, which a failure tells.
/// </summary>
internal static class Resuming
{
    internal static readonly Case[] Cases = Case.All(NoRowIsLostOrRepeated, CountsAndDistinctRowsGoOn);

    private const int Kept = 60;
    private const int Moving = 20;

    private static int versions;

    private static readonly string[] Orders = ["c.v", "c.v DESC", "c.n", "c.n DESC", "c.text ASC, c.n DESC", "c.text DESC, c.n ASC"];

    private static readonly int Count =
        int.TryParse(Environment.GetEnvironmentVariable("ORRERY_RESUMES"), out var count) ? count : 4;

    private static async Task NoRowIsLostOrRepeated(World world)
    {
        var properties = new ContainerProperties("resuming", "/pk");
        properties.IndexingPolicy.CompositeIndexes.Add(
        [
            new CompositePath { Path = "/text", Order = CompositePathSortOrder.Ascending },
            new CompositePath { Path = "/n", Order = CompositePathSortOrder.Descending },
        ]);
        var container = await world.NewContainer(properties, 6000 * world.Partitions);
        var random = new Random(1);
        var items = Enumerable.Range(0, Kept).Select(n => Made($"kept {n}", n, random, 0));
        await Task.WhenAll(items.Select(each => container.CreateItemAsync(each)));
        foreach (var seed in Enumerable.Range(1, Count))
        {
            try
            {
                await Resume(world, container, new Random(seed));
            }
            catch (InvalidOperationException failure)
            {
                throw new InvalidOperationException($"seed {seed}: {failure.Message}", failure);
            }
        }
    }

    private static async Task CountsAndDistinctRowsGoOn(World world)
    {
        var container = world.Database.GetContainer("resuming");
        string[] texts =
        [
            "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT TOP 37 VALUE c.id FROM c ORDER BY c.v",
            "SELECT VALUE c.id FROM c ORDER BY c.text ASC, c.n DESC OFFSET 11 LIMIT 29",
        ];
        foreach (var text in texts)
        {
            var (rows, token) = (new List<JToken>(), (string?)null);
            do
            {
                token = await ReadPage(world, container, (text, 5, token), rows);
            }
            while (token != null);
            Check.SameAll((await container.Query<JToken>(text)).Select(row => row.ToString()), rows.Select(row => row.ToString()));
        }
        await container.DeleteContainerAsync();
    }

    /// <summary>Adds the rows of a page to others and gives its token, by a client of its own.</summary>
    private static async Task<string?> ReadPage<T>(
        World world, Container container, (string Text, int Size, string? Token) what, List<T> rows)
    {
        using var client = world.NewClient();
        using var pages = client.GetContainer(world.Database.Id, container.Id)
            .GetItemQueryIterator<T>(what.Text, what.Token, new QueryRequestOptions { MaxItemCount = what.Size });
        var page = await pages.ReadNextAsync();
        rows.AddRange(page);
        return page.ContinuationToken;
    }

    /// <summary>Of any type that can be sorted by, and one in eight without a value.</summary>
    private static JObject Made(string id, int number, Random random, int version)
    {
        JToken[] values = [JValue.CreateNull(), false, true, random.Next(-5, 5), random.NextDouble(), "", "a", $"b{random.Next(3)}"];
        return new JObject
        {
            ["id"] = id,
            ["pk"] = $"key {number % 31}",
            ["n"] = random.Next(12),
            ["text"] = $"{random.Next(4)}",
            ["v"] = values[random.Next(values.Length)],
            ["version"] = version,
        };
    }

    private static async Task Resume(World world, Container container, Random random)
    {
        var (order, size) = (Orders[random.Next(Orders.Length)], random.Next(1, 30));
        var text = $"SELECT c.id, c.version FROM c ORDER BY {order}";
        var whole = (await container.Query<JObject>(text)).Select(Id).Where(IsKept).ToList();
        Check.Same(Kept, whole.Count);
        var rows = new List<JObject>();
        string? token = null;
        do
        {
            token = await ReadPage(world, container, (text, size, token), rows);
            await WriteSome(container, random);
            Check.That(rows.Count <= 10 * (Kept + Moving), $"pages of {size} by {order} do not end");
        }
        while (token != null);
        Check.SameAll(whole, rows.Select(Id).Where(IsKept));
        var versions = rows.Select(each => $"{each["id"]} {each["version"]}").ToList();
        Check.That(versions.Count == versions.Distinct().Count(), $"a version came twice in pages of {size} by {order}");
    }

    private static string Id(JObject row) => (string)row["id"]!;

    private static bool IsKept(string id) => id.StartsWith("kept", StringComparison.Ordinal);

    private static async Task WriteSome(Container container, Random random)
    {
        for (var left = random.Next(4); left > 0; left--)
        {
            var number = random.Next(Moving);
            var item = Made($"moving {number}", number, random, ++versions);
            if (random.Next(4) > 0)
            {
                await container.UpsertItemAsync(item);
            }
            else
            {
                using var gone = await container.DeleteItemStreamAsync(Id(item), new PartitionKey((string)item["pk"]!));
            }
        }
    }
}
