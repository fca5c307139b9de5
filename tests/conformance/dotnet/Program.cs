// The official .NET SDK, unmodified, against a running Orrery.
//
// Usage: Conformance ENDPOINT KEY PARTITIONS [write|verify [PART OF A CASE'S NAME]]
//
// `write` runs everything and leaves some items behind; `verify` runs after a restart and
// expects them. Each case prints `ok NAME` or `FAILED NAME: why`, and the last line counts
// them. The SDK runs in gateway mode. Over https it trusts what SSL_CERT_FILE names.

using Orrery.Conformance;

// Without this the SDK asks an address outside this machine what machine it is on.
Environment.SetEnvironmentVariable("COSMOS_DISABLE_IMDS_ACCESS", "true");

using var world = new World(args[0], args[1], int.Parse(args[2]));
Case[] writing =
[
    .. Resources.First, .. Connections.Cases, .. Items.Cases, .. Patches.Cases, .. Queries.Cases, .. Order.Cases, .. Resuming.Cases,
    .. Linq.Cases, .. Batches.Cases, .. Bulk.Cases, .. Saving.Cases, .. Changes.Cases, .. Versions.Cases, .. Resources.Cases, .. Scripts.Cases, .. Throttling.Cases,
    .. Articles.Cases, .. world.IsTls ? Tables.Cases : [], .. Kept.Cases,
];
var cases = args.Length > 3 && args[3] == "verify" ? [.. Kept.Verifying, .. Order.Verifying] : writing;
if (args.Length > 4)
{
    cases = cases.Where(each => each.Name.Contains(args[4])).ToArray();
}
var failures = 0;
foreach (var each in cases)
{
    try
    {
        await each.Run(world);
        Console.WriteLine($"ok {each.Name}");
    }
    catch (Exception failure)
    {
        failures++;
        var why = $"{failure.GetType().Name}: {failure.Message}".ReplaceLineEndings(" ");
        Console.Error.WriteLine(failure);
        Console.WriteLine($"FAILED {each.Name}: {why[..Math.Min(why.Length, 400)]}");
    }
}
Console.WriteLine($"{cases.Length - failures} passed, {failures} failed");
return failures == 0 ? 0 : 1;
