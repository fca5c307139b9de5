"""The Python SDK in one of its older versions, unmodified, against a running Orrery.

Usage: older.py ENDPOINT KEY DATABASE

Each creates a database, a container with and one without a partition key where its version of
the protocol allows that, writes, reads, queries and deletes. Up to 4.7 these clients put two
slashes before a path where the endpoint ends without one. It ends with an error at the first
thing that does not hold.
"""

import sys

ENDPOINT, KEY, DATABASE = sys.argv[1:]
ITEMS = [{"id": f"{number}", "pk": f"key {number % 3}", "n": number} for number in range(9)]
BY_N = "SELECT * FROM c WHERE c.n >= @least ORDER BY c.n"
PARAMETERS = [{"name": "@least", "value": 3}]


def check_rows(rows):
    assert [row["n"] for row in rows] == [3, 4, 5, 6, 7, 8], rows


def with_clients_of_4():
    from azure.cosmos import CosmosClient, PartitionKey, exceptions

    client = CosmosClient(ENDPOINT, KEY, connection_verify=False)
    database = client.create_database(DATABASE)
    container = database.create_container("c", PartitionKey("/pk"))
    for item in ITEMS:
        assert container.create_item(item)["_rid"]
    assert container.read_item("4", partition_key="key 1")["n"] == 4
    check_rows(list(container.query_items(BY_N, parameters=PARAMETERS, enable_cross_partition_query=True)))
    container.replace_item("4", {**ITEMS[4], "n": 40})
    container.delete_item("5", partition_key="key 2")
    assert len(list(container.read_all_items())) == 8
    assert [each["id"] for each in database.list_containers()] == ["c"]
    try:
        container.read_item("5", partition_key="key 2")
        raise AssertionError("a deleted item is read")
    except exceptions.CosmosResourceNotFoundError:
        pass
    client.delete_database(database)


def with_clients_before_4(client, container, item):
    """Methods are named after resources, which got other names in version 3."""
    def call(verb, resource, *arguments):
        return getattr(client, f"{verb}{resource}")(*arguments)

    database = client.CreateDatabase({"id": DATABASE})
    keyed = call("Create", container, database["_self"], {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}})
    for each in ITEMS:
        assert call("Create", item, keyed["_self"], dict(each))["_rid"]
    link = f"dbs/{DATABASE}/colls/c"
    assert call("Read", item, f"{link}/docs/4", {"partitionKey": "key 1"})["n"] == 4
    query = {"query": BY_N, "parameters": PARAMETERS}
    check_rows(list(call("Query", f"{item}s", link, query, {"enableCrossPartitionQuery": True})))
    call("Delete", item, f"{link}/docs/5", {"partitionKey": "key 2"})
    assert len(list(call("Read", f"{item}s", link))) == 8
    # Without a key, as everything once was.
    bare = call("Create", container, database["_self"], {"id": "bare"})
    # Clients of that time want a key from whoever shows one.
    assert "partitionKey" not in bare, bare
    created = call("Create", item, bare["_self"], {"id": "1", "n": 1})
    assert call("Read", item, created["_self"])["n"] == 1
    assert len(list(call("Read", f"{container}s", database["_self"]))) == 2
    client.DeleteDatabase(database["_self"])


def main():
    try:
        import pydocumentdb.document_client as before_3
    except ImportError:
        before_3 = None
    if before_3:
        with_clients_before_4(before_3.DocumentClient(ENDPOINT, {"masterKey": KEY}), "Collection", "Document")
        return
    import azure.cosmos
    if hasattr(azure.cosmos, "CosmosClient"):
        with_clients_of_4()
    else:
        import azure.cosmos.cosmos_client as of_3
        with_clients_before_4(of_3.CosmosClient(ENDPOINT, {"masterKey": KEY}), "Container", "Item")


main()
