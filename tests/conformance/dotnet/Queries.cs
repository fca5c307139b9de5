using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>A measurement; every second one is of a temperature.</summary>
internal sealed record Reading(string id, string deviceId, string metricType, int metricValue)
{
    internal static readonly Reading[] All =
    [
        .. from device in Enumerable.Range(1, 10)
           from n in Enumerable.Range(0, 12)
           select new Reading($"{device}-{n}", $"XMS-{device:0000}", n % 2 == 1 ? "Humidity" : "Temperature", 80 + ((device * 37) + (n * 11)) % 50),
    ];

    internal static readonly Reading[] Hot = [.. All.Where(each => each.metricType == "Temperature" && each.metricValue > 100)];

    internal static async Task<Container> Fill(World world, string name)
    {
        var container = await world.NewContainer(name, "/deviceId");
        await Task.WhenAll(All.Select(each => container.CreateItemAsync(each)));
        return container;
    }
}

/// <summary>Queries as text, whose rows the SDK merges.</summary>
internal static class Queries
{
    internal static readonly Case[] Cases = Case.All(
        OfOneKey, AcrossPartitions, InOrder, Aggregates, GroupsAndDistinctRows, OffsetsAndTops, PagesGoOnFromTheirToken,
        OrderedPagesGoOnInANewClient, Streams, MixedTypesInOrder, CompositeOrder, Joins, MetricsAreTold, WrongQueriesAreRefused);

    private const string HotOnes = "SELECT * FROM c WHERE c.metricType = \"Temperature\" AND c.metricValue > 100";

    private static Container Readings(World world) => world.Database.GetContainer("readings");

    private static IEnumerable<string> Ids(IEnumerable<Reading> readings) => readings.Select(each => each.id);

    private static async Task OfOneKey(World world)
    {
        var container = await Reading.Fill(world, "readings");
        var query = new QueryDefinition("SELECT * FROM c WHERE c.metricType = @type AND c.deviceId = @device")
            .WithParameter("@type", "Temperature").WithParameter("@device", "XMS-0001");
        var expected = Reading.All.Where(each => each.deviceId == "XMS-0001" && each.metricType == "Temperature");
        foreach (var options in new[] { new QueryRequestOptions(), new() { PartitionKey = new PartitionKey("XMS-0001") } })
        {
            Check.SameAll(Ids(expected).Order(), Ids(await container.Query<Reading>(query, options)).Order());
        }
    }

    private static async Task AcrossPartitions(World world)
    {
        foreach (var concurrency in new[] { 0, 1, 10, -1 })
        {
            var options = new QueryRequestOptions { MaxConcurrency = concurrency, MaxItemCount = 7 };
            Check.SameAll(Ids(Reading.Hot).Order(), Ids(await Readings(world).Query<Reading>(HotOnes, options)).Order());
        }
    }

    private static async Task InOrder(World world)
    {
        var values = Reading.Hot.Select(each => each.metricValue).Order().ToList();
        foreach (var size in new[] { 1, 7, 100, -1 })
        {
            var options = new QueryRequestOptions { MaxConcurrency = 10, MaxBufferedItemCount = 100, MaxItemCount = size };
            var rows = await Readings(world).Query<Reading>(HotOnes + " ORDER BY c.metricValue", options);
            Check.SameAll(values, rows.Select(each => each.metricValue));
            rows = await Readings(world).Query<Reading>(HotOnes + " ORDER BY c.metricValue DESC", options);
            Check.SameAll(values.AsEnumerable().Reverse(), rows.Select(each => each.metricValue));
        }
    }

    private static async Task Aggregates(World world)
    {
        var values = Reading.All.Select(each => each.metricValue).ToList();
        async Task Is(double expected, string aggregate) =>
            Check.Same(expected, (await Readings(world).Query<double>($"SELECT VALUE {aggregate} FROM c")).Single());
        await Is(values.Count, "COUNT(1)");
        await Is(values.Sum(), "SUM(c.metricValue)");
        await Is(values.Min(), "MIN(c.metricValue)");
        await Is(values.Max(), "MAX(c.metricValue)");
        await Is(values.Average(), "AVG(c.metricValue)");
        var row = (await Readings(world).Query<JObject>("SELECT COUNT(1) AS many, MAX(c.id) AS last FROM c WHERE c.metricValue > 1000")).Single();
        Check.Same(0, (int)row["many"]!);
        Check.That(row["last"] is null, "nothing has a maximum");
    }

    private static async Task GroupsAndDistinctRows(World world)
    {
        var groups = await Readings(world).Query<JObject>(
            "SELECT c.metricType, COUNT(1) AS many, AVG(c.metricValue) AS mean FROM c GROUP BY c.metricType");
        var expected = Reading.All.GroupBy(each => each.metricType)
            .Select(each => (each.Key, each.Count(), each.Average(of => of.metricValue)));
        Check.SameAll(expected.Order(), groups.Select(each => ((string)each["metricType"]!, (int)each["many"]!, (double)each["mean"]!)).Order());
        var types = await Readings(world).Query<string>("SELECT DISTINCT VALUE c.metricType FROM c");
        Check.SameAll(["Humidity", "Temperature"], types.Order());
        var values = await Readings(world).Query<int>("SELECT DISTINCT VALUE c.metricValue FROM c ORDER BY c.metricValue");
        Check.SameAll(Reading.All.Select(each => each.metricValue).Distinct().Order(), values);
    }

    private static async Task OffsetsAndTops(World world)
    {
        var ids = Ids(Reading.All).Order(StringComparer.Ordinal).ToList();
        var options = new QueryRequestOptions { MaxItemCount = 6 };
        Check.SameAll(ids[30..50], await Readings(world).Query<string>("SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 30 LIMIT 20", options));
        Check.SameAll(ids[..10], await Readings(world).Query<string>("SELECT TOP 10 VALUE c.id FROM c ORDER BY c.id", options));
        Check.Same(15, (await Readings(world).Query<string>("SELECT VALUE c.id FROM c OFFSET 5 LIMIT 15", options)).Count);
    }

    private static async Task PagesGoOnFromTheirToken(World world)
    {
        var options = new QueryRequestOptions { MaxItemCount = 7 };
        var whole = Ids(await Readings(world).Query<Reading>(HotOnes, options));
        Check.SameAll(whole, await PageByPage(Readings(world), HotOnes, options));
    }

    /// <summary>Each page by an iterator of its own.</summary>
    private static async Task<List<string>> PageByPage(Container container, string text, QueryRequestOptions options)
    {
        var ids = new List<string>();
        string? token = null;
        do
        {
            using var pages = container.GetItemQueryIterator<Reading>(text, token, options);
            var page = await pages.ReadNextAsync();
            ids.AddRange(Ids(page));
            token = page.ContinuationToken;
            Check.That(ids.Count <= Reading.All.Length, "pages repeat");
        }
        while (token != null);
        return ids;
    }

    private static async Task OrderedPagesGoOnInANewClient(World world)
    {
        foreach (var order in new[] { "c.metricValue", "c.metricValue DESC", "c.metricType" })
        {
            var text = $"SELECT * FROM c ORDER BY {order}";
            var whole = Ids(await Readings(world).Query<Reading>(text));
            var ids = new List<string>();
            string? token = null;
            do
            {
                using var client = world.NewClient();
                using var pages = client.GetContainer(world.Database.Id, "readings")
                    .GetItemQueryIterator<Reading>(text, token, new QueryRequestOptions { MaxItemCount = 25 });
                var page = await pages.ReadNextAsync();
                ids.AddRange(Ids(page));
                token = page.ContinuationToken;
                Check.That(ids.Count <= Reading.All.Length, $"pages ordered by {order} repeat");
            }
            while (token != null);
            Check.SameAll(whole, ids);
        }
    }

    private static async Task Streams(World world)
    {
        using var pages = Readings(world).GetItemQueryStreamIterator("SELECT VALUE COUNT(1) FROM c");
        using var page = await pages.ReadNextAsync();
        using var reader = new StreamReader(page.Content);
        var body = JObject.Parse(await reader.ReadToEndAsync());
        Check.Same(Reading.All.Length, (int)body["Documents"]![0]!);
        using var wrong = Readings(world).GetItemQueryStreamIterator("SELECT * FORM c");
        using var refusal = await wrong.ReadNextAsync();
        Check.Same(HttpStatusCode.BadRequest, refusal.StatusCode);
    }

    /// <summary>Null, booleans, numbers and strings, in this order.</summary>
    private static async Task MixedTypesInOrder(World world)
    {
        var mixed = await world.NewContainer("mixed");
        // The first one has no value to be sorted by.
        string[] members = ["", "null", "false", "true", "-1", "0.5", "20", "\"\"", "\"a\"", "\"b\""];
        members = [.. members.Select(value => value == "" ? "" : $",\"v\":{value}")];
        foreach (var (member, n) in members.Select((member, n) => (member, n)))
        {
            await mixed.CreateItemAsync(JObject.Parse($$"""{"id":"{{n}}","pk":"{{n * 7 % 5}}"{{member}}}"""));
        }
        var options = new QueryRequestOptions { MaxItemCount = 2 };
        var ids = await mixed.Query<string>("SELECT VALUE c.id FROM c ORDER BY c.v", options);
        Check.SameAll(Enumerable.Range(0, members.Length).Select(n => $"{n}"), ids);
        await mixed.DeleteContainerAsync();
    }

    private static async Task CompositeOrder(World world)
    {
        var properties = new ContainerProperties("composite", "/pk");
        properties.IndexingPolicy.CompositeIndexes.Add(
        [
            new CompositePath { Path = "/text", Order = CompositePathSortOrder.Ascending },
            new CompositePath { Path = "/n", Order = CompositePathSortOrder.Descending },
        ]);
        var container = await world.NewContainer(properties);
        var items = Enumerable.Range(0, 30).Select(n => new Item($"{n}", $"{n % 7}", n, $"group {n % 3}")).ToList();
        await Task.WhenAll(items.Select(each => container.CreateItemAsync(each)));
        var options = new QueryRequestOptions { MaxItemCount = 4 };
        var rows = await container.Query<Item>("SELECT * FROM c ORDER BY c.text ASC, c.n DESC", options);
        Check.SameAll(items.OrderBy(each => each.text).ThenByDescending(each => each.n).Select(each => each.id), rows.Select(each => each.id));
        await container.DeleteContainerAsync();
    }

    private static async Task Joins(World world)
    {
        await world.Container.UpsertItemAsync(JObject.Parse("""{"id":"order","pk":"joins","lines":[{"sku":"a","n":2},{"sku":"b","n":5}]}"""));
        var rows = await world.Container.Query<string>("SELECT VALUE l.sku FROM c JOIN l IN c.lines WHERE c.pk = 'joins' AND l.n > 1");
        Check.SameAll(["a", "b"], rows);
        var sums = await world.Container.Query<int>(
            "SELECT VALUE (SELECT VALUE SUM(l.n) FROM l IN c.lines) FROM c WHERE c.id = 'order' AND EXISTS(SELECT VALUE l FROM l IN c.lines WHERE l.n = 5)");
        Check.Same(7, sums.Single());
        await world.Container.DeleteItemAsync<JObject>("order", new PartitionKey("joins"));
    }

    private static async Task MetricsAreTold(World world)
    {
        var options = new QueryRequestOptions { PopulateIndexMetrics = true };
        using var pages = Readings(world).GetItemQueryIterator<Reading>(HotOnes, requestOptions: options);
        long retrieved = 0;
        while (pages.HasMoreResults)
        {
            var page = await pages.ReadNextAsync();
            Check.That(page.IndexMetrics.Contains("/metricValue/?"), page.IndexMetrics);
            retrieved += page.Diagnostics.GetQueryMetrics().CumulativeMetrics.RetrievedDocumentCount;
        }
        Check.That(retrieved >= Reading.Hot.Length, $"{retrieved} documents were retrieved");
    }

    private static async Task WrongQueriesAreRefused(World world)
    {
        async Task Wrong(string text, string why)
        {
            var refusal = await Check.Refused(HttpStatusCode.BadRequest, () => Readings(world).Query<JToken>(text));
            Check.That(refusal.ToString().Contains(why), refusal.Message);
        }
        await Wrong("SELECT * FORM c", "SC1001");
        await Wrong("SELECT NOTHING(c.id) FROM c", "SC2005");
        await Wrong("SELECT * FROM c ORDER BY c.a, c.b", "composite index");
    }
}
