using System.Collections;
using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>One thing that must work, under the name of its method.</summary>
internal sealed record Case(string Name, Func<World, Task> Run)
{
    internal static Case[] All(params Func<World, Task>[] cases) =>
        [.. cases.Select(each => new Case($"{each.Method.DeclaringType!.Name}.{each.Method.Name}", each))];
}

/// <summary>An item of most cases.</summary>
internal sealed record Item(string id, string pk, int n = 0, string? text = null, string? _etag = null);

/// <summary>What the cases share: one client, a database and a container with the key /pk.</summary>
internal sealed class World : IDisposable
{
    internal World(string endpoint, string key, int partitions)
    {
        Endpoint = endpoint;
        Key = key;
        Partitions = partitions;
        Client = new CosmosClient(endpoint, key, Options());
        Database = Client.GetDatabase($"net{partitions}");
        Container = Database.GetContainer("items");
    }

    internal string Endpoint { get; }

    internal string Key { get; }

    internal int Partitions { get; }

    internal int Throughput => Partitions == 1 ? 400 : 6000 * Partitions;

    internal CosmosClient Client { get; }

    internal Database Database { get; }

    internal Container Container { get; }

    internal bool IsTls => Endpoint.StartsWith("https", StringComparison.Ordinal);

    internal static CosmosClientOptions Options() => new() { ConnectionMode = ConnectionMode.Gateway };

    /// <summary>Another client, which knows nothing of what this one has seen.</summary>
    internal CosmosClient NewClient(Action<CosmosClientOptions>? change = null)
    {
        var options = Options();
        change?.Invoke(options);
        return new CosmosClient(Endpoint, Key, options);
    }

    internal async Task<Container> NewContainer(string id, string path = "/pk", int? throughput = null) =>
        await NewContainer(new ContainerProperties(id, path), throughput);

    internal async Task<Container> NewContainer(ContainerProperties properties, int? throughput = null) =>
        await Database.CreateContainerAsync(properties, throughput ?? Throughput);

    public void Dispose() => Client.Dispose();
}

/// <summary>What cases say of answers.</summary>
internal static class Check
{
    internal static void That(bool holds, string what)
    {
        if (!holds)
        {
            throw new InvalidOperationException(what);
        }
    }

    internal static void Same<T>(T expected, T actual) =>
        That(Equals(expected, actual), $"{Shown(actual)} instead of {Shown(expected)}");

    internal static void SameAll<T>(IEnumerable<T> expected, IEnumerable<T> actual)
    {
        var (wanted, found) = (expected.ToList(), actual.ToList());
        That(wanted.SequenceEqual(found), $"{Shown(found)} instead of {Shown(wanted)}");
    }

    /// <summary>The request must fail with this status; gives back the refusal.</summary>
    internal static async Task<CosmosException> Refused(HttpStatusCode status, Func<Task> request)
    {
        try
        {
            await request();
        }
        catch (CosmosException refusal)
        {
            That(refusal.StatusCode == status, $"{refusal.StatusCode} instead of {status}: {refusal.Message}");
            return refusal;
        }
        throw new InvalidOperationException($"not refused with {status}");
    }

    private static string Shown(object? value) => value switch
    {
        null => "nothing",
        string text => $"\"{text}\"",
        JToken json => json.ToString(Newtonsoft.Json.Formatting.None),
        IEnumerable many => $"[{string.Join(", ", many.Cast<object?>().Select(Shown))}]",
        _ => value.ToString() ?? "",
    };
}

internal static class Feeds
{
    /// <summary>All rows, page by page.</summary>
    internal static async Task<List<T>> All<T>(this FeedIterator<T> pages)
    {
        var rows = new List<T>();
        using (pages)
        {
            while (pages.HasMoreResults)
            {
                rows.AddRange(await pages.ReadNextAsync());
            }
        }
        return rows;
    }

    internal static Task<List<T>> Query<T>(this Container container, string text, QueryRequestOptions? options = null) =>
        container.GetItemQueryIterator<T>(text, requestOptions: options).All();

    internal static Task<List<T>> Query<T>(this Container container, QueryDefinition query, QueryRequestOptions? options = null) =>
        container.GetItemQueryIterator<T>(query, requestOptions: options).All();
}
