using System.Net.Http.Headers;
using System.Text;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>
/// Rows that nothing sorts. They come as their items were created: across the keys of a physical
/// partition, inside each key, and where the values that sort them are equal.
/// </summary>
internal static class Order
{
    internal static readonly Case[] Cases = Case.All(RowsComeAsTheirItemsWereCreated, RowsKeepTheirOrderThroughSplitsAndMerges);

    internal static readonly Case[] Verifying = Case.All(RowsKeepTheirOrderThroughARestart);

    /// <summary>The ids, as they are created: neither they nor their keys are in any other order.</summary>
    private const string Letters = "mzakqcxbtehwdnyfuljrgp";
    private const int Keys = 5;
    /// <summary>What many small pages cost in a second; a container with that still has one partition.</summary>
    private const int OnePartitionMax = 6000;

    /// <summary>Without a text, items are listed.</summary>
    private static readonly string?[] Queries =
    [
        null, "SELECT * FROM c", "SELECT * FROM c WHERE c.text = 'same'", "SELECT * FROM c WHERE c.n > 0", "SELECT * FROM c ORDER BY c.text",
    ];

    private static string KeyOf(char letter) => $"key {Letters.IndexOf(letter) * 3 % Keys}";

    private static Item Made(char letter) => new($"{letter}", KeyOf(letter), letter, "same");

    private static async Task<string> Create(Container container, string letters)
    {
        foreach (var letter in letters)
        {
            await container.CreateItemAsync(Made(letter));
        }
        return letters;
    }

    private static string Among(string letters, string others) => string.Concat(letters.Where(others.Contains));

    private static string OfKey(string letters, string key) => string.Concat(letters.Where(letter => KeyOf(letter) == key));

    /// <summary>Each page by an iterator of its own, which is given the token of the page before.</summary>
    private static async Task<string> Read(Container container, string? text, FeedRange? range, QueryRequestOptions options)
    {
        var (letters, token) = ("", (string?)null);
        do
        {
            var query = text is null ? null : new QueryDefinition(text);
            using var pages = range is null
                ? container.GetItemQueryIterator<Item>(query, token, options)
                : container.GetItemQueryIterator<Item>(range, query, token, options);
            var page = await pages.ReadNextAsync();
            letters += string.Concat(page.Select(each => each.id));
            token = page.ContinuationToken;
        }
        while (token != null);
        return letters;
    }

    /// <summary>Each way of reading gives every item once, and those of each sequence in its order.</summary>
    private static async Task Verify(Container container, (FeedRange? Range, PartitionKey? Key) scope, params string[] sequences)
    {
        foreach (var (size, degree) in new[] { (-1, 0), (2, 0), (2, -1) })
        {
            foreach (var text in Queries)
            {
                var options = new QueryRequestOptions { MaxItemCount = size, MaxConcurrency = degree, PartitionKey = scope.Key };
                var letters = await Read(container, text, scope.Range, options);
                Check.SameAll(sequences, sequences.Select(each => Among(letters, each)));
                Check.Same(string.Concat(sequences).Distinct().Count(), letters.Length);
            }
        }
    }

    private static Task Verify(Container container, params string[] sequences) => Verify(container, (null, null), sequences);

    private static Task VerifyKey(Container container, string letters, string key) =>
        Verify(container, (null, new PartitionKey(key)), OfKey(letters, key));

    private static async Task RowsComeAsTheirItemsWereCreated(World world)
    {
        var container = await world.NewContainer("created", throughput: OnePartitionMax);
        var letters = await Create(container, Letters[..14]);
        await Verify(container, letters);
        await VerifyKey(container, letters, "key 0");
        await VerifyKey(container, letters, "key 3");
        // Whatever changes an item leaves it where it is.
        await container.ReplaceItemAsync(Made('a') with { n = 1 }, "a");
        await container.UpsertItemAsync(Made('z') with { n = 1 });
        await container.PatchItemAsync<Item>("x", new PartitionKey(KeyOf('x')), [PatchOperation.Set("/n", 1)]);
        await Verify(container, letters);
        // An item that is deleted and created again is a new one.
        await container.DeleteItemAsync<Item>("k", new PartitionKey(KeyOf('k')));
        letters = letters.Replace("k", "") + await Create(container, "k");
        await Verify(container, letters);
        await VerifyKey(container, letters, KeyOf('k'));
    }

    /// <summary>Changes a layout as an operator would, and gives back the ids of the new ranges.</summary>
    private static async Task<JArray> Operate(World world, string verb, JObject body)
    {
        using var client = new HttpClient { BaseAddress = new Uri(world.Endpoint) };
        client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", world.Key);
        using var content = new StringContent(body.ToString(), Encoding.UTF8, "application/json");
        using var answer = await client.PostAsync($"_orrery/{verb}", content);
        var text = await answer.Content.ReadAsStringAsync();
        Check.That(answer.IsSuccessStatusCode, text);
        return new JArray(JObject.Parse(text)["new"]!.Select(each => each["id"]!));
    }

    /// <summary>The letters of each range, which must come in the same order among themselves.</summary>
    private static async Task<string[]> ByRange(World world, Container container, string letters)
    {
        // The SDK keeps the ranges that it has seen until it is told that one is gone.
        using var client = world.NewClient();
        var parts = new List<string>();
        foreach (var range in await client.GetContainer(world.Database.Id, container.Id).GetFeedRangesAsync())
        {
            parts.Add(Among(letters, await Read(container, null, range, new QueryRequestOptions())));
            await Verify(container, (range, null), parts[^1]);
        }
        return [.. parts];
    }

    private static async Task RowsKeepTheirOrderThroughSplitsAndMerges(World world)
    {
        var container = await world.NewContainer("moved", throughput: OnePartitionMax);
        var link = $"dbs/{world.Database.Id}/colls/moved";
        var letters = await Create(container, Letters[..10]);
        var children = await Operate(world, "split", new JObject { ["container"] = link, ["range"] = "0" });
        Check.Same(2, (await ByRange(world, container, letters)).Length);
        letters += await Create(container, Letters[10..16]);
        var parts = await ByRange(world, container, letters);
        Check.That(parts.Length == 2 && parts.All(part => part.Length > 3), string.Join(" and ", parts));
        await Verify(container, parts);
        var merged = await Operate(world, "merge", new JObject { ["container"] = link, ["ranges"] = children });
        Check.Same(1, merged.Count);
        // A client that still knows the old ranges asks for them first, and learns of the new one.
        await Verify(container, parts);
        var later = await Create(container, Letters[16..20]);
        parts = [.. parts.Select(part => part + later)];
        await Verify(container, parts);
        await world.Container.UpsertItemAsync(new Item("order", "order", text: string.Join(" ", parts)));
    }

    private static async Task RowsKeepTheirOrderThroughARestart(World world)
    {
        var created = world.Database.GetContainer("created");
        await Verify(created, Letters[..14].Replace("k", "") + "k" + await Create(created, Letters[14..16]));
        var moved = world.Database.GetContainer("moved");
        var kept = (await world.Container.ReadItemAsync<Item>("order", new PartitionKey("order"))).Resource.text!.Split(' ');
        var later = await Create(moved, Letters[20..]);
        await Verify(moved, [.. kept.Select(sequence => sequence + later)]);
    }
}
