using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;

namespace Orrery.Conformance;

/// <summary>Databases, containers and everything else that is no item.</summary>
internal static class Resources
{
    /// <summary>What all other cases need.</summary>
    internal static readonly Case[] First = Case.All(Databases, AContainerWithKeyAndThroughput);

    internal static readonly Case[] Cases = Case.All(
        ContainersLiveAndChange, EveryPolicyIsKept, IfNotExists, Lists, ThroughputIsReadAndReplaced,
        AutoscaleIsReadAndReplaced, SharedThroughput, UsersAndPermissions, ScriptsAreKept, ThereAreNoConflicts,
        WrongDefinitionsAreRefused);

    private static async Task Databases(World world)
    {
        var created = await world.Client.CreateDatabaseAsync(world.Database.Id);
        Check.Same(HttpStatusCode.Created, created.StatusCode);
        Check.That(created.Resource.SelfLink.StartsWith("dbs/") && created.Resource.LastModified != null, "no system properties");
        await Check.Refused(HttpStatusCode.Conflict, () => world.Client.CreateDatabaseAsync(world.Database.Id));
        using var stream = await world.Client.GetDatabase("nothing").ReadStreamAsync();
        Check.Same(HttpStatusCode.NotFound, stream.StatusCode);
        Database brief = await world.Client.CreateDatabaseAsync("brief");
        Check.Same(HttpStatusCode.NoContent, (await brief.DeleteAsync()).StatusCode);
    }

    private static async Task AContainerWithKeyAndThroughput(World world)
    {
        await world.NewContainer(world.Container.Id);
        var read = (await world.Container.ReadContainerAsync()).Resource;
        Check.Same("/pk", read.PartitionKeyPath);
        Check.Same(IndexingMode.Consistent, read.IndexingPolicy.IndexingMode);
        Check.Same(world.Partitions, (await world.Container.GetFeedRangesAsync()).Count);
    }

    private static async Task ContainersLiveAndChange(World world)
    {
        var life = await world.NewContainer(new ContainerProperties("life", "/pk")
        {
            DefaultTimeToLive = 3600,
            UniqueKeyPolicy = new UniqueKeyPolicy { UniqueKeys = { new UniqueKey { Paths = { "/text" } } } },
        });
        await life.CreateItemAsync(new Item("1", "a", text: "x"));
        await Check.Refused(HttpStatusCode.Conflict, () => life.CreateItemAsync(new Item("2", "a", text: "x")));
        await life.CreateItemAsync(new Item("2", "b", text: "x"));
        ContainerProperties changed = await life.ReadContainerAsync();
        changed.IndexingPolicy.ExcludedPaths.Add(new ExcludedPath { Path = "/text/?" });
        changed.DefaultTimeToLive = -1;
        ContainerProperties replaced = await life.ReplaceContainerAsync(changed);
        Check.Same(-1, replaced.DefaultTimeToLive);
        Check.That(replaced.IndexingPolicy.ExcludedPaths.Any(each => each.Path == "/text/?"), "the indexing policy was not replaced");
        await life.DeleteContainerAsync();
        await Check.Refused(HttpStatusCode.NotFound, () => life.ReadContainerAsync());
        await Check.Refused(HttpStatusCode.NotFound, () => life.ReadItemAsync<Item>("1", new PartitionKey("a")));
        // Under its old name there may be another one, whose key is elsewhere.
        var again = await world.NewContainer("life", "/text");
        Check.Same("x", (await again.CreateItemAsync(new Item("1", "a", text: "x"))).Resource.text);
        await again.DeleteContainerAsync();
    }

    private static async Task EveryPolicyIsKept(World world)
    {
        var properties = new ContainerProperties("policies", "/pk")
        {
            DefaultTimeToLive = 60,
            GeospatialConfig = new GeospatialConfig(GeospatialType.Geometry),
            ConflictResolutionPolicy = new ConflictResolutionPolicy { Mode = ConflictResolutionMode.LastWriterWins, ResolutionPath = "/n" },
            ComputedProperties = [new ComputedProperty { Name = "lower", Query = "SELECT VALUE LOWER(c.text) FROM c" }],
            VectorEmbeddingPolicy = new VectorEmbeddingPolicy(
            [
                new Embedding { Path = "/vector", DataType = VectorDataType.Float32, Dimensions = 8, DistanceFunction = DistanceFunction.Cosine },
            ]),
            FullTextPolicy = new FullTextPolicy
            {
                DefaultLanguage = "en-US",
                FullTextPaths = [new FullTextPath { Path = "/text", Language = "en-US" }],
            },
        };
        var indexing = properties.IndexingPolicy;
        indexing.IncludedPaths.Add(new IncludedPath { Path = "/*" });
        indexing.CompositeIndexes.Add(
        [
            new CompositePath { Path = "/n", Order = CompositePathSortOrder.Ascending },
            new CompositePath { Path = "/text", Order = CompositePathSortOrder.Descending },
        ]);
        indexing.SpatialIndexes.Add(new SpatialPath
        {
            Path = "/place/?",
            SpatialTypes = { SpatialType.Point, SpatialType.Polygon },
            BoundingBox = new BoundingBoxProperties { Xmin = 0, Ymin = 0, Xmax = 10, Ymax = 10 },
        });
        indexing.VectorIndexes.Add(new VectorIndexPath { Path = "/vector", Type = VectorIndexType.QuantizedFlat });
        indexing.FullTextIndexes.Add(new FullTextIndexPath { Path = "/text" });
        var container = await world.NewContainer(properties);
        ContainerProperties read = await container.ReadContainerAsync();
        Check.Same(GeospatialType.Geometry, read.GeospatialConfig.GeospatialType);
        Check.Same("/n", read.ConflictResolutionPolicy.ResolutionPath);
        Check.Same("lower", read.ComputedProperties.Single().Name);
        Check.Same(8, read.VectorEmbeddingPolicy.Embeddings.Single().Dimensions);
        Check.Same("/text", read.FullTextPolicy.FullTextPaths.Single().Path);
        Check.Same(CompositePathSortOrder.Descending, read.IndexingPolicy.CompositeIndexes.Single()[1].Order);
        Check.Same("/place/?", read.IndexingPolicy.SpatialIndexes.Single().Path);
        Check.Same(VectorIndexType.QuantizedFlat, read.IndexingPolicy.VectorIndexes.Single().Type);
        Check.Same("/text", read.IndexingPolicy.FullTextIndexes.Single().Path);
        await container.DeleteContainerAsync();
    }

    private static async Task IfNotExists(World world)
    {
        Check.Same(HttpStatusCode.OK, (await world.Client.CreateDatabaseIfNotExistsAsync(world.Database.Id)).StatusCode);
        Check.Same(HttpStatusCode.OK, (await world.Database.CreateContainerIfNotExistsAsync(world.Container.Id, "/pk")).StatusCode);
        var made = await world.Database.CreateContainerIfNotExistsAsync("made", "/pk");
        Check.Same(HttpStatusCode.Created, made.StatusCode);
        await made.Container.DeleteContainerAsync();
    }

    private static async Task Lists(World world)
    {
        var databases = await world.Client.GetDatabaseQueryIterator<DatabaseProperties>().All();
        Check.That(databases.Any(each => each.Id == world.Database.Id), "the database is not listed");
        var byName = new QueryDefinition("SELECT * FROM c WHERE c.id = @id").WithParameter("@id", world.Container.Id);
        var containers = await world.Database.GetContainerQueryIterator<ContainerProperties>(byName).All();
        Check.Same(world.Container.Id, containers.Single().Id);
        using var pages = world.Database.GetContainerQueryStreamIterator(requestOptions: new QueryRequestOptions { MaxItemCount = 1 });
        using var page = await pages.ReadNextAsync();
        Check.That(page.IsSuccessStatusCode && pages.HasMoreResults, "no page of one container");
    }

    private static async Task ThroughputIsReadAndReplaced(World world)
    {
        Check.Same(world.Throughput, await world.Container.ReadThroughputAsync());
        await world.Container.ReplaceThroughputAsync(world.Throughput + 100);
        ThroughputResponse read = await world.Container.ReadThroughputAsync(new RequestOptions());
        Check.Same(world.Throughput + 100, read.Resource.Throughput);
        Check.That(read.MinThroughput >= 400 && read.IsReplacePending == false, "no minimum");
        await Check.Refused(HttpStatusCode.BadRequest, () => world.Container.ReplaceThroughputAsync(450));
        await Check.Refused(HttpStatusCode.BadRequest, () => world.NewContainer("bad", throughput: 50));
        Check.Same(null, await world.Database.ReadThroughputAsync());
    }

    private static async Task AutoscaleIsReadAndReplaced(World world)
    {
        var autoscale = ThroughputProperties.CreateAutoscaleThroughput(5000);
        Container scaling = await world.Database.CreateContainerAsync(new ContainerProperties("scaling", "/pk"), autoscale);
        ThroughputResponse read = await scaling.ReadThroughputAsync(new RequestOptions());
        Check.Same(5000, read.Resource.AutoscaleMaxThroughput);
        await scaling.ReplaceThroughputAsync(ThroughputProperties.CreateAutoscaleThroughput(7000));
        read = await scaling.ReadThroughputAsync(new RequestOptions());
        Check.Same(7000, read.Resource.AutoscaleMaxThroughput);
        await scaling.DeleteContainerAsync();
    }

    private static async Task SharedThroughput(World world)
    {
        Database shared = await world.Client.CreateDatabaseAsync($"shared{world.Partitions}", 1000);
        Check.Same(1000, await shared.ReadThroughputAsync());
        Container container = await shared.CreateContainerAsync("member", "/pk");
        Check.Same(null, await container.ReadThroughputAsync());
        await container.CreateItemAsync(new Item("1", "a"));
        await shared.ReplaceThroughputAsync(1100);
        Check.Same(1100, await shared.ReadThroughputAsync());
        await shared.DeleteAsync();
    }

    private static async Task UsersAndPermissions(World world)
    {
        User user = await world.Database.UpsertUserAsync("someone");
        var properties = new PermissionProperties("reads", PermissionMode.Read, world.Container);
        await user.CreatePermissionAsync(properties);
        Check.Same("reads", (await user.GetPermissionQueryIterator<PermissionProperties>().All()).Single().Id);
        Check.Same(PermissionMode.Read, (await user.GetPermission("reads").ReadAsync()).Resource.PermissionMode);
        await user.GetPermission("reads").DeleteAsync();
        Check.Same("renamed", (await user.ReplaceAsync(new UserProperties("renamed"))).Resource.Id);
        Check.That((await world.Database.GetUserQueryIterator<UserProperties>().All()).Any(each => each.Id == "renamed"), "not listed");
        await world.Database.GetUser("renamed").DeleteAsync();
        await Check.Refused(HttpStatusCode.NotFound, () => user.ReadAsync());
    }

    private static async Task ScriptsAreKept(World world)
    {
        var scripts = world.Container.Scripts;
        const string body = "function () {}";
        await scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("sp", body));
        await scripts.CreateTriggerAsync(new TriggerProperties
        {
            Id = "tr", Body = body, TriggerType = TriggerType.Pre, TriggerOperation = TriggerOperation.All,
        });
        await scripts.CreateUserDefinedFunctionAsync(new UserDefinedFunctionProperties { Id = "fn", Body = body });
        Check.Same(body, (await scripts.ReadStoredProcedureAsync("sp")).Resource.Body);
        Check.Same("sp", (await scripts.GetStoredProcedureQueryIterator<StoredProcedureProperties>().All()).Single().Id);
        Check.Same(TriggerType.Pre, (await scripts.ReadTriggerAsync("tr")).Resource.TriggerType);
        await scripts.ReplaceUserDefinedFunctionAsync(new UserDefinedFunctionProperties { Id = "fn", Body = "function f() {}" });
        Check.Same("function f() {}", (await scripts.ReadUserDefinedFunctionAsync("fn")).Resource.Body);
        await scripts.DeleteStoredProcedureAsync("sp");
        await scripts.DeleteTriggerAsync("tr");
        await scripts.DeleteUserDefinedFunctionAsync("fn");
        await Check.Refused(HttpStatusCode.NotFound, () => scripts.ReadStoredProcedureAsync("sp"));
    }

    private static async Task ThereAreNoConflicts(World world) =>
        Check.Same(0, (await world.Container.Conflicts.GetConflictQueryIterator<ConflictProperties>().All()).Count);

    private static async Task WrongDefinitionsAreRefused(World world)
    {
        await Check.Refused(HttpStatusCode.BadRequest, () => world.NewContainer("wrong", "/"));
        var ttl = new ContainerProperties("wrong", "/pk") { DefaultTimeToLive = 0 };
        await Check.Refused(HttpStatusCode.BadRequest, () => world.NewContainer(ttl));
        ContainerProperties other = await world.Container.ReadContainerAsync();
        other.PartitionKeyPath = "/other";
        await Check.Refused(HttpStatusCode.BadRequest, () => world.Container.ReplaceContainerAsync(other));
    }
}
