extern alias tables;

using tables::Microsoft.Azure.Cosmos.Table;

namespace Orrery.Conformance;

/// <summary>
/// The articles' Table program. Over https to localhost its SDK speaks the NoSQL protocol, over http
/// the Table REST one, which is not spoken here. Of the former all passes but merges and batches, which
/// are stored procedures, and etags: the SDK makes a time of them that lacks the half which tells
/// versions apart, so what is changed or deleted on a condition is refused with 412.
/// </summary>
internal static class Tables
{
    /// <summary>For https only.</summary>
    internal static readonly Case[] Cases = Case.All(Sample12CreateAndRetrieve, EntitiesChange, EntitiesAreQueried, EntitiesAndTablesGo);

    public class CustomerEntity : TableEntity
    {
        public CustomerEntity()
        {
        }

        public CustomerEntity(string lastName, string firstName)
        {
            PartitionKey = lastName;
            RowKey = firstName;
        }

        public string? Email { get; set; }

        public string? PhoneNumber { get; set; }
    }

    private static CloudTable People(World world)
    {
        var account = new CloudStorageAccount(
            new StorageCredentials("localhost", world.Key), new StorageUri(new Uri(world.Endpoint.Replace("127.0.0.1", "localhost"))));
        var configuration = new TableClientConfiguration();
        configuration.CosmosExecutorConfiguration.UseConnectionModeDirect = false;
        return account.CreateCloudTableClient(configuration).GetTableReference("people");
    }

    private static async Task Sample12CreateAndRetrieve(World world)
    {
        var table = People(world);
        await table.CreateIfNotExistsAsync();
        var ben = new CustomerEntity("Smith", "Ben") { Email = "Ben@contoso.com", PhoneNumber = "425-555-0102" };
        await table.ExecuteAsync(TableOperation.Insert(ben));
        TableOperation retrieveOperation = TableOperation.Retrieve<CustomerEntity>("Smith", "Ben");
        TableResult retrievedResult = await table.ExecuteAsync(retrieveOperation);
        Check.Same("425-555-0102", ((CustomerEntity)retrievedResult.Result).PhoneNumber);
    }

    private static async Task EntitiesChange(World world)
    {
        var table = People(world);
        async Task<CustomerEntity?> Read() =>
            (CustomerEntity?)(await table.ExecuteAsync(TableOperation.Retrieve<CustomerEntity>("Smith", "Ben"))).Result;
        var ben = (await Read())!;
        ben.PhoneNumber = "425-555-0103";
        ben.ETag = "*";
        await table.ExecuteAsync(TableOperation.Replace(ben));
        Check.Same("425-555-0103", (await Read())!.PhoneNumber);
        await table.ExecuteAsync(TableOperation.InsertOrReplace(new CustomerEntity("Smith", "Ben") { Email = "b@contoso.com" }));
        Check.Same(null, (await Read())!.PhoneNumber);
    }

    private static async Task EntitiesAreQueried(World world)
    {
        var table = People(world);
        foreach (var n in Enumerable.Range(0, 6))
        {
            await table.ExecuteAsync(TableOperation.InsertOrReplace(new CustomerEntity($"Family {n % 2}", $"Person {n}")));
        }
        var query = new TableQuery<CustomerEntity>().Where(TableQuery.GenerateFilterCondition("PartitionKey", QueryComparisons.Equal, "Family 1"));
        var rows = await table.ExecuteQuerySegmentedAsync(query, null);
        Check.SameAll(["Person 1", "Person 3", "Person 5"], rows.Select(each => each.RowKey).Order());
    }

    private static async Task EntitiesAndTablesGo(World world)
    {
        var table = People(world);
        var ben = (CustomerEntity)(await table.ExecuteAsync(TableOperation.Retrieve<CustomerEntity>("Smith", "Ben"))).Result;
        ben.ETag = "*";
        await table.ExecuteAsync(TableOperation.Delete(ben));
        Check.Same(404, (await table.ExecuteAsync(TableOperation.Retrieve<CustomerEntity>("Smith", "Ben"))).HttpStatusCode);
        await table.DeleteAsync();
        Check.That(!await table.ExistsAsync(), "it is still there");
    }
}
