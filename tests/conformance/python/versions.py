"""All versions and deletes with the official Python SDK: cases of conformance.py."""

import asyncio
import time

from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from changes import KEYS, PATIENCE_SECONDS

MODE = "AllVersionsAndDeletes"


class Writer:
    """Writes items, and knows every operation on each key since `take` was last called."""

    def __init__(self, container):
        self.container, self.items, self.story = container, {}, {}

    def put(self, number, version):
        item = {"id": f"{number}", "pk": f"key {number % KEYS}", "version": version}
        self.container.upsert_item(item)
        self.tell("replace" if number in self.items else "create", number, version)
        self.items[number] = version

    def delete(self, number):
        self.container.delete_item(f"{number}", f"key {number % KEYS}")
        self.tell("delete", number, self.items.pop(number))

    def tell(self, operation, number, version):
        self.story.setdefault(f"key {number % KEYS}", []).append((operation, f"{number}", version))

    def write_some(self, first):
        for number in range(first, first + 3 * KEYS):
            self.put(number, 0)
        for version in [1, 2]:
            for number in range(first, first + 3 * KEYS, 4):
                self.put(number, version)
        for number in range(first, first + 3 * KEYS, 3):
            self.delete(number)

    def take(self):
        story, self.story = self.story, {}
        return story


def told(changes):
    """The operations on each key, in their order."""
    story, last, positions = {}, {}, {}
    for change in changes:
        metadata = change["metadata"]
        operation = metadata["operationType"]
        if operation == "delete":
            item = change["previous"]
            assert change["current"] == {} and metadata["timeToLiveExpired"] is False
            assert metadata["id"] == item["id"] and metadata["partitionKey"] == {"pk": item["pk"]}
        else:
            item = change["current"]
            assert "previous" not in change and "id" not in metadata
        assert item["_etag"] and item["_rid"] and item["_ts"] <= metadata["crts"]
        assert metadata["lsn"] > last.get(item["pk"], 0)
        assert operation == "create" or metadata["previousImageLSN"] == positions.get(item["id"], metadata["previousImageLSN"])
        last[item["pk"]] = positions[item["id"]] = metadata["lsn"]
        story.setdefault(item["pk"], []).append((operation, item["id"], item["version"]))
    return story


def feed(container, **options):
    """All that there is now, and the position behind it."""
    changes = list(container.query_items_change_feed(mode=MODE, **options))
    return changes, container.client_connection.last_response_headers["etag"]


def new_container(world, name):
    return world.database.create_container(
        name, PartitionKey("/pk"), offer_throughput=world.throughput, change_feed_policy={"retentionDuration": 10}
    )


def all_versions_from_now_on(world):
    container = new_container(world, "versions")
    assert container.read()["changeFeedPolicy"] == {"retentionDuration": 10}
    writer = Writer(container)
    writer.write_some(0)
    writer.take()
    changes, start = feed(container, start_time="Now")
    assert changes == []
    position = start
    for first in [0, 10, 0]:
        writer.items = {int(item["id"]): item["version"] for item in container.read_all_items()}
        writer.write_some(first)
        changes, position = feed(container, continuation=position, max_item_count=3)
        assert told(changes) == writer.take()
    assert feed(container, continuation=position)[0] == []
    world.container.upsert_item({"id": "versions", "deviceId": "followed", "position": position})


def all_versions_of_one_key_and_of_feed_ranges(world):
    container = new_container(world, "partsOfVersions")
    starts = {f"key {at}": feed(container, start_time="Now", partition_key=f"key {at}")[1] for at in range(KEYS)}
    ranges = [feed(container, start_time="Now", feed_range=each)[1] for each in container.read_feed_ranges()]
    writer = Writer(container)
    writer.write_some(0)
    expected = writer.take()
    for key, position in starts.items():
        changes, position = feed(container, continuation=position, max_item_count=2)
        assert told(changes) == {key: expected[key]}
        assert feed(container, continuation=position)[0] == []
    assert told([change for position in ranges for change in feed(container, continuation=position)[0]]) == expected


def expiry_is_told_as_such(world):
    container = world.database.create_container(
        "expiringVersions", PartitionKey("/pk"), default_ttl=-1, change_feed_policy={"retentionDuration": 10}
    )
    _, position = feed(container, start_time="Now")
    container.create_item({"id": "short", "pk": "a", "ttl": 1})
    changes, deadline = [], time.monotonic() + PATIENCE_SECONDS
    while len(changes) < 2:
        assert time.monotonic() < deadline, changes
        time.sleep(0.2)
        more, position = feed(container, continuation=position)
        changes += more
    created, expired = [change["metadata"] for change in changes]
    assert (created["operationType"], expired["operationType"]) == ("create", "delete")
    assert expired["timeToLiveExpired"] is True and expired["previousImageLSN"] == created["lsn"]
    assert (expired["id"], expired["partitionKey"]) == ("short", {"pk": "a"})


def all_versions_need_a_policy(world):
    container = world.database.create_container("noVersions", PartitionKey("/pk"))
    try:
        feed(container, start_time="Now")
    except CosmosHttpResponseError as error:
        assert error.status_code == 400 and "changeFeedPolicy" in error.message
    else:
        raise AssertionError("versions without a policy")


def all_versions_of_the_asynchronous_client(world):
    asyncio.run(read_asynchronously(world))


async def read_asynchronously(world):
    container = world.database.get_container_client("versions")
    writer = Writer(container)
    async with AsyncClient(world.endpoint, world.key, connection_verify=False) as client:
        same = client.get_database_client(world.name).get_container_client("versions")
        assert [change async for change in same.query_items_change_feed(mode=MODE, start_time="Now")] == []
        position = same.client_connection.last_response_headers["etag"]
        for number in range(500, 500 + KEYS):
            writer.put(number, 0)
            writer.delete(number)
        changes = [change async for change in same.query_items_change_feed(mode=MODE, continuation=position)]
        assert told(changes) == writer.take()


def all_versions_go_on_through_splits(world):
    """More throughput than the partitions can have makes the server split them all."""
    container = new_container(world, "splittingVersions")
    writer = Writer(container)
    _, position = feed(container, start_time="Now")
    number, after, deadline = 0, 0, time.monotonic() + PATIENCE_SECONDS
    while after < 2 * KEYS:
        assert time.monotonic() < deadline, "no split"
        if number == KEYS:
            container.replace_throughput(10000 * world.partitions + 1000)
        writer.put(number % (2 * KEYS), number)
        if number % 3 == 2:
            writer.delete(number % (2 * KEYS))
        number += 1
        changes, position = feed(container, continuation=position, max_item_count=3)
        assert told(changes) == writer.take()
        after += len(list(container.read_feed_ranges(force_refresh=True))) > world.partitions
    assert feed(container, continuation=position)[0] == []


def verify_all_versions_after_restart(world):
    container = world.database.get_container_client("versions")
    position = world.container.read_item("versions", "followed")["position"]
    _, position = feed(container, continuation=position)
    writer = Writer(container)
    writer.items = {int(item["id"]): item["version"] for item in container.read_all_items()}
    writer.write_some(3)
    changes, position = feed(container, continuation=position)
    assert told(changes) == writer.take()
    assert feed(container, continuation=position)[0] == []


CASES = [
    all_versions_from_now_on,
    all_versions_of_one_key_and_of_feed_ranges,
    expiry_is_told_as_such,
    all_versions_need_a_policy,
    all_versions_of_the_asynchronous_client,
    all_versions_go_on_through_splits,
]
