extern alias tables;

using tables::Microsoft.Azure.Cosmos.Table;

namespace Orrery.Conformance;

/// <summary>
/// The articles' Table program. Over https to localhost its SDK speaks the NoSQL protocol, over http
/// the Table REST one, which is not spoken here.
/// </summary>
internal static class Tables
{
    internal static readonly Case[] Cases = Case.All(Sample12TableOverTls);

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

    private static async Task Sample12TableOverTls(World world)
    {
        if (!world.IsTls)
        {
            return;
        }
        var account = new CloudStorageAccount(
            new StorageCredentials("localhost", world.Key),
            new StorageUri(new Uri(world.Endpoint.Replace("127.0.0.1", "localhost"))));
        var configuration = new TableClientConfiguration();
        configuration.CosmosExecutorConfiguration.UseConnectionModeDirect = false;
        CloudTableClient tableClient = account.CreateCloudTableClient(configuration);
        CloudTable table = tableClient.GetTableReference("people");
        await table.CreateIfNotExistsAsync();
        var ben = new CustomerEntity("Smith", "Ben") { Email = "Ben@contoso.com", PhoneNumber = "425-555-0102" };
        await table.ExecuteAsync(TableOperation.Insert(ben));
        TableOperation retrieveOperation = TableOperation.Retrieve<CustomerEntity>("Smith", "Ben");
        TableResult retrievedResult = await table.ExecuteAsync(retrieveOperation);
        Check.Same("425-555-0102", ((CustomerEntity)retrievedResult.Result).PhoneNumber);
        await table.DeleteAsync();
    }
}
