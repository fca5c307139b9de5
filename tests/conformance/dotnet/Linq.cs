using System.Linq.Expressions;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Linq;

namespace Orrery.Conformance;

/// <summary>Queries as expressions, each held against the same expression over a list.</summary>
internal static class Linq
{
    internal static readonly Case[] Cases = Case.All(Filters, Projections, OrdersAndPages, Aggregates, Groups);

    private static IOrderedQueryable<Reading> Queryable(World world) =>
        world.Database.GetContainer("readings").GetItemLinqQueryable<Reading>();

    private static async Task Filters(World world)
    {
        string[] some = ["1-3", "7-7", "nothing"];
        Expression<Func<Reading, bool>>[] filters =
        [
            each => each.metricType == "Temperature" && each.deviceId == "XMS-0001",
            each => each.metricValue > 100 || each.id.StartsWith("2-"),
            each => !(each.metricValue >= 90) && each.metricType != "Humidity",
            each => some.Contains(each.id),
            each => each.deviceId.ToLower().EndsWith("0007") && each.metricValue % 2 == 0,
            each => each.id.Contains("1") && Math.Abs(each.metricValue - 100) < 10,
            each => each.id.Substring(0, 1) == "5" && each.metricValue / 2 > 50,
            each => (each.metricType == "Humidity" ? 1 : 0) + each.metricValue > 120,
        ];
        foreach (var filter in filters)
        {
            var expected = Reading.All.Where(filter.Compile()).Select(each => each.id).Order();
            using var pages = Queryable(world).Where(filter).ToFeedIterator();
            Check.SameAll(expected, (await pages.All()).Select(each => each.id).Order());
        }
    }

    private static async Task Projections(World world)
    {
        var hot = Queryable(world).Where(each => each.metricValue > 120);
        using var pages = hot.Select(each => new { each.id, doubled = each.metricValue * 2, kind = each.metricType.ToUpper() }).ToFeedIterator();
        var expected = Reading.All.Where(each => each.metricValue > 120).Select(each => (each.id, each.metricValue * 2, each.metricType.ToUpper()));
        Check.SameAll(expected.Order(), (await pages.All()).Select(each => (each.id, each.doubled, each.kind)).Order());
        using var types = Queryable(world).Select(each => each.metricType).Distinct().ToFeedIterator();
        Check.SameAll(["Humidity", "Temperature"], (await types.All()).Order());
    }

    private static async Task OrdersAndPages(World world)
    {
        using var ordered = Queryable(world).Where(each => each.metricValue > 100).OrderByDescending(each => each.metricValue).ToFeedIterator();
        var expected = Reading.All.Where(each => each.metricValue > 100).Select(each => each.metricValue).OrderDescending();
        Check.SameAll(expected, (await ordered.All()).Select(each => each.metricValue));
        using var page = Queryable(world).OrderBy(each => each.id).Skip(10).Take(5).ToFeedIterator();
        var ids = Reading.All.Select(each => each.id).Order(StringComparer.Ordinal).Skip(10).Take(5);
        Check.SameAll(ids, (await page.All()).Select(each => each.id));
    }

    private static async Task Aggregates(World world)
    {
        var hot = Queryable(world).Where(each => each.metricValue > 100);
        var values = Reading.All.Select(each => each.metricValue).Where(each => each > 100).ToList();
        Check.Same(values.Count, (await hot.CountAsync()).Resource);
        Check.Same(values.Sum(), (await hot.Select(each => each.metricValue).SumAsync()).Resource);
        Check.Same(values.Min(), (await hot.Select(each => each.metricValue).MinAsync()).Resource);
        Check.Same(values.Max(), (await hot.Select(each => each.metricValue).MaxAsync()).Resource);
        Check.Same(values.Average(), (await hot.Select(each => each.metricValue).AverageAsync()).Resource);
    }

    private static async Task Groups(World world)
    {
        var groups = Queryable(world).GroupBy(each => each.metricType, (type, of) => new { type, many = of.Count() });
        using var pages = groups.ToFeedIterator();
        Check.SameAll([("Humidity", 60), ("Temperature", 60)], (await pages.All()).Select(each => (each.type, each.many)).Order());
    }
}
