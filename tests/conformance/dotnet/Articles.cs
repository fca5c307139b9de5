using Microsoft.Azure.Documents;
using Microsoft.Azure.Documents.Client;
using Microsoft.Azure.Documents.Linq;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Orrery.Conformance;

/// <summary>
/// The programs of the articles on partitioning, as they were printed, with the SDK of their time.
/// Their names for a database and a collection are "db" and "coll".
/// </summary>
internal static class Articles
{
    internal static readonly Case[] Cases = Case.All(
        Sample1CreateDatabase, Sample2CreateCollection, Sample3CreateDocument, Sample4ReadDocument, Sample5ReplaceDocument,
        Sample6DeleteDocument, Sample7QueryByKey, Sample8QueryAcrossPartitions, QuotasAreTold, CollectionsWithoutAKey,
        Sample9QueryInParallel, Sample10ExecuteStoredProcedure);

    public class DeviceReading
    {
        [JsonProperty("id")]
        public string? Id;

        [JsonProperty("deviceId")]
        public string? DeviceId;

        [JsonConverter(typeof(Newtonsoft.Json.Converters.IsoDateTimeConverter))]
        [JsonProperty("readingTime")]
        public DateTime ReadingTime;

        [JsonProperty("metricType")]
        public string? MetricType;

        [JsonProperty("unit")]
        public string? Unit;

        [JsonProperty("metricValue")]
        public double MetricValue;
    }

    private static DocumentClient? connected;

    private static DocumentClient Client(World world) => connected ??=
        new DocumentClient(new Uri(world.Endpoint), world.Key, new ConnectionPolicy { ConnectionMode = ConnectionMode.Gateway });

    private static async Task Sample1CreateDatabase(World world)
    {
        var client = Client(world);
        await client.CreateDatabaseAsync(new Database { Id = "db" });
        Check.Same("db", (await client.ReadDatabaseAsync(UriFactory.CreateDatabaseUri("db"))).Resource.Id);
    }

    private static async Task Sample2CreateCollection(World world)
    {
        var client = Client(world);
        DocumentCollection myCollection = new DocumentCollection();
        myCollection.Id = "coll";
        myCollection.PartitionKey.Paths.Add("/deviceId");

        await client.CreateDocumentCollectionAsync(
            UriFactory.CreateDatabaseUri("db"),
            myCollection,
            new RequestOptions { OfferThroughput = 20000 });
        DocumentCollection read = await client.ReadDocumentCollectionAsync(UriFactory.CreateDocumentCollectionUri("db", "coll"));
        Check.Same("/deviceId", read.PartitionKey.Paths.Single());
    }

    private static async Task Sample3CreateDocument(World world)
    {
        var client = Client(world);
        await client.CreateDocumentAsync(
            UriFactory.CreateDocumentCollectionUri("db", "coll"),
            new DeviceReading
            {
                Id = "XMS-001-FE24C",
                DeviceId = "XMS-0001",
                MetricType = "Temperature",
                MetricValue = 105.00,
                Unit = "Fahrenheit",
                ReadingTime = DateTime.UtcNow
            });
    }

    private static async Task Sample4ReadDocument(World world)
    {
        var client = Client(world);
        Document result = await client.ReadDocumentAsync(
          UriFactory.CreateDocumentUri("db", "coll", "XMS-001-FE24C"),
          new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") });

        DeviceReading reading = (DeviceReading)(dynamic)result;
        Check.Same(105.0, reading.MetricValue);
    }

    private static async Task Sample5ReplaceDocument(World world)
    {
        var client = Client(world);
        Document result = await client.ReadDocumentAsync(
          UriFactory.CreateDocumentUri("db", "coll", "XMS-001-FE24C"),
          new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") });
        DeviceReading reading = (DeviceReading)(dynamic)result;

        reading.MetricValue = 104;
        reading.ReadingTime = DateTime.UtcNow;

        Document replaced = await client.ReplaceDocumentAsync(
          UriFactory.CreateDocumentUri("db", "coll", "XMS-001-FE24C"),
          reading);
        Check.Same(104.0, replaced.GetPropertyValue<double>("metricValue"));
    }

    private static async Task Sample6DeleteDocument(World world)
    {
        var client = Client(world);
        await client.DeleteDocumentAsync(
          UriFactory.CreateDocumentUri("db", "coll", "XMS-001-FE24C"),
          new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") });
        try
        {
            await client.ReadDocumentAsync(
              UriFactory.CreateDocumentUri("db", "coll", "XMS-001-FE24C"),
              new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") });
            Check.That(false, "it is still there");
        }
        catch (DocumentClientException refusal)
        {
            Check.Same(System.Net.HttpStatusCode.NotFound, refusal.StatusCode);
        }
    }

    private static async Task Sample7QueryByKey(World world)
    {
        var client = Client(world);
        foreach (var each in Reading.All)
        {
            await client.CreateDocumentAsync(UriFactory.CreateDocumentCollectionUri("db", "coll"), each);
        }
        // Query using partition key
        IQueryable<DeviceReading> query = client.CreateDocumentQuery<DeviceReading>(
            UriFactory.CreateDocumentCollectionUri("db", "coll"))
            .Where(m => m.MetricType == "Temperature" && m.DeviceId == "XMS-0001");
        Check.SameAll(Reading.All.Where(each => each.metricType == "Temperature" && each.deviceId == "XMS-0001").Select(each => each.id).Order(),
            query.ToList().Select(each => each.Id!).Order());
    }

    private static Task Sample8QueryAcrossPartitions(World world)
    {
        var client = Client(world);
        // Query across partition keys
        IQueryable<DeviceReading> crossPartitionQuery = client.CreateDocumentQuery<DeviceReading>(
            UriFactory.CreateDocumentCollectionUri("db", "coll"),
            new FeedOptions { EnableCrossPartitionQuery = true })
            .Where(m => m.MetricType == "Temperature" && m.MetricValue > 100);
        Check.SameAll(Reading.Hot.Select(each => each.id).Order(), crossPartitionQuery.ToList().Select(each => each.Id!).Order());
        return Task.CompletedTask;
    }

    /// <summary>The SDK finds a usage by the place that its quota has.</summary>
    private static async Task QuotasAreTold(World world)
    {
        var response = await Client(world).ReadDocumentAsync(
            UriFactory.CreateDocumentUri("db", "coll", "1-0"), new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") });
        Check.That(response.DocumentUsage > 0 && response.DocumentUsage <= Reading.All.Length, $"{response.DocumentUsage} documents");
        Check.That(response.CollectionSizeQuota > response.CollectionSizeUsage, "no quota is left");
    }

    /// <summary>This SDK knows collections without a key, and asks for none on them.</summary>
    private static async Task CollectionsWithoutAKey(World world)
    {
        var client = Client(world);
        DocumentCollection made = await client.CreateDocumentCollectionAsync(
            UriFactory.CreateDatabaseUri("db"), new DocumentCollection { Id = "fixed" }, new RequestOptions { OfferThroughput = 400 });
        Check.Same(0, made.PartitionKey.Paths.Count);
        var collection = UriFactory.CreateDocumentCollectionUri("db", "fixed");
        await client.CreateDocumentAsync(collection, new DeviceReading { Id = "1", Unit = "Fahrenheit" });
        Document read = await client.ReadDocumentAsync(UriFactory.CreateDocumentUri("db", "fixed", "1"));
        read.SetPropertyValue("unit", "Celsius");
        Document replaced = await client.ReplaceDocumentAsync(read);
        Check.Same("Celsius", replaced.GetPropertyValue<string>("unit"));
        Check.SameAll(["1"], client.CreateDocumentQuery<DeviceReading>(collection).Where(each => each.Unit == "Celsius").ToList().Select(each => each.Id!));
        await client.DeleteDocumentAsync(read.SelfLink);
        Check.Same(0, client.CreateDocumentQuery(collection).ToList().Count);
        await client.DeleteDocumentCollectionAsync(made.SelfLink);
    }

    private static async Task Sample9QueryInParallel(World world)
    {
        var client = Client(world);
        // Cross-partition Order By Query with parallel execution
        IQueryable<DeviceReading> crossPartitionQuery = client.CreateDocumentQuery<DeviceReading>(
            UriFactory.CreateDocumentCollectionUri("db", "coll"),
            new FeedOptions { EnableCrossPartitionQuery = true, MaxDegreeOfParallelism = 10, MaxBufferedItemCount = 100 })
            .Where(m => m.MetricType == "Temperature" && m.MetricValue > 100)
            .OrderBy(m => m.MetricValue);
        Check.SameAll(Reading.Hot.Select(each => (double)each.metricValue).Order(), crossPartitionQuery.ToList().Select(each => each.MetricValue));
    }

    /// <summary>To the letter the article names a key that no device has: "XMS-001".</summary>
    private static async Task Sample10ExecuteStoredProcedure(World world)
    {
        var client = Client(world);
        var collection = UriFactory.CreateDocumentCollectionUri("db", "coll");
        await client.CreateStoredProcedureAsync(
            collection, new StoredProcedure { Id = Scripts.SetLatestState, Body = Scripts.Text(Scripts.SetLatestState) });
        foreach (var id in new[] { "XMS-001-FE24C", "XMS-001-FE24B" })
        {
            await client.CreateDocumentAsync(collection, new { id, deviceId = "XMS-0001", metricType = "Pressure", isLatest = true });
        }
        var literally = await client.ExecuteStoredProcedureAsync<JObject>(
            UriFactory.CreateStoredProcedureUri("db", "coll", "SetLatestStateAcrossReadings"),
            new RequestOptions { PartitionKey = new PartitionKey("XMS-001") },
            "XMS-001-FE24C");
        Check.Same(0, literally.Response.Value<int>("outdated"));
        var done = await client.ExecuteStoredProcedureAsync<JObject>(
            UriFactory.CreateStoredProcedureUri("db", "coll", "SetLatestStateAcrossReadings"),
            new RequestOptions { PartitionKey = new PartitionKey("XMS-0001") },
            "XMS-001-FE24C");
        Check.Same("XMS-001-FE24C", done.Response.Value<string>("latest"));
        Check.Same(1, done.Response.Value<int>("outdated"));
        await client.DeleteDatabaseAsync(UriFactory.CreateDatabaseUri("db"));
    }
}
