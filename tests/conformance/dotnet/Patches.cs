using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>Changes to parts of an item.</summary>
internal static class Patches
{
    internal static readonly Case[] Cases = Case.All(EveryOperation, Conditions, WrongPatchesAreRefused);

    private static readonly PartitionKey P = new("p");

    private static async Task EveryOperation(World world)
    {
        var item = JObject.Parse("""{"id":"p","pk":"p","n":1,"list":[1,3],"gone":1,"from":7}""");
        await world.Container.CreateItemAsync(item);
        JObject patched = await world.Container.PatchItemAsync<JObject>("p", P,
        [
            PatchOperation.Add("/list/1", 2), PatchOperation.Add("/list/-", 4), PatchOperation.Set("/new", new { deep = new[] { 1 } }),
            PatchOperation.Replace("/n", 5), PatchOperation.Remove("/gone"), PatchOperation.Increment("/n", 2.5),
            PatchOperation.Move("/from", "/to"), PatchOperation.Set<string?>("/nothing", null),
        ]);
        Check.Same("[1,2,3,4]", patched["list"]!.ToString(Newtonsoft.Json.Formatting.None));
        Check.Same(7.5, (double)patched["n"]!);
        Check.Same(1, (int)patched["new"]!["deep"]![0]!);
        Check.Same(7, (int)patched["to"]!);
        Check.That(patched["gone"] is null && patched["from"] is null && patched["nothing"]!.Type == JTokenType.Null, "left over");
        using var stream = await world.Container.PatchItemStreamAsync("p", P, [PatchOperation.Increment("/n", 1)]);
        Check.Same(HttpStatusCode.OK, stream.StatusCode);
    }

    private static async Task Conditions(World world)
    {
        PatchOperation[] zero = [PatchOperation.Set("/n", 0)];
        var wrong = new PatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n = 1" };
        await Check.Refused(HttpStatusCode.PreconditionFailed, () => world.Container.PatchItemAsync<JObject>("p", P, zero, wrong));
        var right = new PatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n > 1 AND IS_DEFINED(c.new.deep)" };
        JObject patched = await world.Container.PatchItemAsync<JObject>("p", P, zero, right);
        Check.Same(0, (int)patched["n"]!);
        var stale = new PatchItemRequestOptions { IfMatchEtag = "\"stale\"" };
        await Check.Refused(HttpStatusCode.PreconditionFailed, () => world.Container.PatchItemAsync<JObject>("p", P, zero, stale));
    }

    private static async Task WrongPatchesAreRefused(World world)
    {
        Task Patch(string id, params PatchOperation[] operations) => world.Container.PatchItemAsync<JObject>(id, P, operations);
        await Check.Refused(HttpStatusCode.NotFound, () => Patch("nothing", PatchOperation.Set("/n", 0)));
        await Check.Refused(HttpStatusCode.BadRequest, () => Patch("p", PatchOperation.Set("/pk", "q")));
        await Check.Refused(HttpStatusCode.BadRequest, () => Patch("p", PatchOperation.Remove("/absent")));
        await Check.Refused(HttpStatusCode.BadRequest, () => Patch("p", PatchOperation.Increment("/list", 1)));
        var many = Enumerable.Range(0, 11).Select(n => PatchOperation.Set($"/n{n}", n)).ToArray();
        await Check.Refused(HttpStatusCode.BadRequest, () => Patch("p", many));
        await world.Container.DeleteItemAsync<JObject>("p", P);
    }
}
