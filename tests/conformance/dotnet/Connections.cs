using System.Net;
using Azure;
using Microsoft.Azure.Cosmos;

namespace Orrery.Conformance;

/// <summary>The ways to an account: endpoints, connection strings, keys and tokens.</summary>
internal static class Connections
{
    internal static readonly Case[] Cases = Case.All(
        ConnectionStrings, Credentials, ClientsThatLookAtContainersFirst, TheAccount, WrongKeysAreRefused,
        TokensOpenWhatTheirPermissionNames, DirectModeIsToldWhatToDo);

    private static async Task ConnectionStrings(World world)
    {
        var endpoint = world.Endpoint.TrimEnd('/');
        string[] strings =
        [
            $"AccountEndpoint={endpoint}/;AccountKey={world.Key};",
            $"AccountEndpoint={endpoint};AccountKey={world.Key}",
            $"accountkey={world.Key};accountendpoint={endpoint}",
            $"AccountEndpoint={endpoint}/;AccountKey={world.Key};Database={world.Database.Id};",
            $"AccountEndpoint={endpoint}/;AccountKey={world.Key};DisableServerCertificateValidation=True;",
        ];
        foreach (var text in strings)
        {
            using var client = new CosmosClient(text, World.Options());
            Check.Same(world.Database.Id, (await client.GetDatabase(world.Database.Id).ReadAsync()).Resource.Id);
        }
    }

    private static async Task Credentials(World world)
    {
        using var byKey = new CosmosClient(world.Endpoint, new AzureKeyCredential(world.Key), World.Options());
        Check.Same(world.Container.Id, (await byKey.GetContainer(world.Database.Id, world.Container.Id).ReadContainerAsync()).Resource.Id);
        using var byName = new CosmosClient(world.Endpoint.Replace("127.0.0.1", "localhost"), world.Key, World.Options());
        Check.Same(world.Database.Id, (await byName.GetDatabase(world.Database.Id).ReadAsync()).Resource.Id);
    }

    private static async Task ClientsThatLookAtContainersFirst(World world)
    {
        (string, string)[] containers = [(world.Database.Id, world.Container.Id)];
        using var client = await CosmosClient.CreateAndInitializeAsync(world.Endpoint, world.Key, containers, World.Options());
        Check.Same(world.Database.Id, (await client.GetDatabase(world.Database.Id).ReadAsync()).Resource.Id);
    }

    private static async Task TheAccount(World world)
    {
        var account = await world.Client.ReadAccountAsync();
        Check.Same(ConsistencyLevel.Session, account.Consistency.DefaultConsistencyLevel);
        Check.Same(1, account.WritableRegions.Count());
        // An application may name the region it runs in: the SDK knows Azure's names and refuses others.
        using var client = world.NewClient(options => options.ApplicationRegion = account.WritableRegions.First().Name);
        await client.GetDatabase(world.Database.Id).ReadAsync();
    }

    private static async Task WrongKeysAreRefused(World world)
    {
        using var stranger = new CosmosClient(world.Endpoint, "d3Jvbmcgd3Jvbmcgd3Jvbmc=", World.Options());
        await Check.Refused(HttpStatusCode.Unauthorized, () => stranger.GetDatabase("any").ReadAsync());
    }

    private static async Task TokensOpenWhatTheirPermissionNames(World world)
    {
        await world.Container.UpsertItemAsync(new Item("shown", "one", 1));
        await world.Container.UpsertItemAsync(new Item("hidden", "two", 2));
        User user = await world.Database.CreateUserAsync("holder");
        var reads = new PermissionProperties("reads", PermissionMode.Read, world.Container, new PartitionKey("one"));
        var all = new PermissionProperties("all", PermissionMode.All, world.Container);
        await user.CreatePermissionAsync(all, tokenExpiryInSeconds: 3600);
        var permission = (await user.CreatePermissionAsync(reads)).Resource;
        using (var reader = new CosmosClient(world.Endpoint, permission.Token, World.Options()))
        {
            var container = reader.GetContainer(world.Database.Id, world.Container.Id);
            Check.Same(1, (await container.ReadItemAsync<Item>("shown", new PartitionKey("one"))).Resource.n);
            await Check.Refused(HttpStatusCode.Forbidden, () => container.ReadItemAsync<Item>("hidden", new PartitionKey("two")));
            await Check.Refused(HttpStatusCode.Forbidden, () => container.UpsertItemAsync(new Item("shown", "one"), new PartitionKey("one")));
        }
        var token = (await user.GetPermission("all").ReadAsync()).Resource.Token;
        using (var writer = new CosmosClient(world.Endpoint, token, World.Options()))
        {
            var container = writer.GetContainer(world.Database.Id, world.Container.Id);
            Check.Same(3, (await container.UpsertItemAsync(new Item("hidden", "two", 3))).Resource.n);
            await Check.Refused(HttpStatusCode.Forbidden, () => writer.GetDatabase(world.Database.Id).ReadAsync());
        }
        await user.DeleteAsync();
    }

    /// <summary>It is the SDK's default, and not spoken here.</summary>
    private static async Task DirectModeIsToldWhatToDo(World world)
    {
        using var client = world.NewClient(options => options.ConnectionMode = ConnectionMode.Direct);
        var container = client.GetContainer(world.Database.Id, world.Container.Id);
        var refusal = await Check.Refused(HttpStatusCode.BadRequest, () => container.ReadItemAsync<Item>("any", new PartitionKey("any")));
        Check.That(refusal.Message.Contains("ConnectionMode = ConnectionMode.Gateway"), refusal.Message);
    }
}
