using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>Stored procedures with the SDK of today.</summary>
internal static class Scripts
{
    internal const string SetLatestState = "SetLatestStateAcrossReadings";

    internal static readonly Case[] Cases = Case.All(Sample10ExecuteStoredProcedure, AFailureChangesNothing);

    /// <summary>The text of a script that the programs of all SDKs share.</summary>
    internal static string Text(string name) =>
        File.ReadAllText(Path.Combine(Environment.GetEnvironmentVariable("ORRERY_SCRIPTS")!, $"{name}.js"));

    private static async Task Sample10ExecuteStoredProcedure(World world)
    {
        var readings = await world.NewContainer("latest", "/deviceId");
        await readings.Scripts.CreateStoredProcedureAsync(new StoredProcedureProperties(SetLatestState, Text(SetLatestState)));
        foreach (var id in new[] { "XMS-001-FE24C", "XMS-001-FE24B" })
        {
            await readings.CreateItemAsync(new { id, deviceId = "XMS-0001", metricType = "Temperature", isLatest = true });
        }
        Task<StoredProcedureExecuteResponse<JObject>> Execute(string key) =>
            readings.Scripts.ExecuteStoredProcedureAsync<JObject>(SetLatestState, new PartitionKey(key), ["XMS-001-FE24C"]);
        // To the letter the article names a key that no device has.
        Check.Same(0, (await Execute("XMS-001")).Resource.Value<int>("outdated"));
        var done = (await Execute("XMS-0001")).Resource;
        Check.Same("XMS-001-FE24C", done.Value<string>("latest"));
        Check.Same(1, done.Value<int>("outdated"));
        var older = await readings.ReadItemAsync<JObject>("XMS-001-FE24B", new PartitionKey("XMS-0001"));
        Check.Same(false, older.Resource.Value<bool>("isLatest"));
    }

    private static async Task AFailureChangesNothing(World world)
    {
        var readings = world.Database.GetContainer("latest");
        const string body = """
            function () {
                __.createDocument(__.getSelfLink(), { id: "half", deviceId: "XMS-0001" }, function () { throw new Error("half-way"); });
            }
            """;
        await readings.Scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("half", body));
        var refusal = await Check.Refused(HttpStatusCode.BadRequest, () =>
            readings.Scripts.ExecuteStoredProcedureAsync<JObject>("half", new PartitionKey("XMS-0001"), []));
        Check.That(refusal.Message.Contains("half-way"), refusal.Message);
        await Check.Refused(HttpStatusCode.NotFound, () => readings.ReadItemAsync<JObject>("half", new PartitionKey("XMS-0001")));
    }
}
