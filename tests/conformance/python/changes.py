"""The change feed with the official Python SDK: cases of conformance.py."""

import asyncio
import time
from datetime import datetime, timezone

from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncClient

KEYS = 7
# A layout changes in well under a second; a machine may be busy with other things.
PATIENCE_SECONDS = 60


class Writer:
    """Writes items, and knows what a feed must tell that begins where `take` was last called."""

    def __init__(self, container):
        self.container, self.expected = container, {}

    def put(self, number, version):
        item = {"id": f"{number}", "pk": f"key {number % KEYS}", "version": version}
        written = self.container.upsert_item(item)
        versions = self.expected.setdefault(item["pk"], {})
        versions.pop(item["id"], None)
        versions[item["id"]] = version
        return written

    def delete(self, number):
        self.container.delete_item(f"{number}", f"key {number % KEYS}")
        self.expected.get(f"key {number % KEYS}", {}).pop(f"{number}", None)

    def write_some(self, first):
        """Creates items, changes some of them once or twice and deletes some."""
        numbers = range(first, first + 4 * KEYS)
        for number in numbers:
            self.put(number, 0)
        for version, every in [(1, 3), (2, 6)]:
            for number in numbers[::every]:
                self.put(number, version)
        for number in numbers[::5]:
            self.delete(number)

    def take(self):
        expected, self.expected = self.expected, {}
        return {key: list(versions.items()) for key, versions in expected.items() if versions}


def check(changes, expected):
    """Of each key every item once, in its latest version, in the order of the writes."""
    told, last = {}, {}
    for change in changes:
        key = change["pk"]
        told.setdefault(key, []).append((change["id"], change["version"]))
        assert change["_lsn"] > last.get(key, 0), f"_lsn {change['_lsn']} after {last.get(key)} of {key}"
        last[key] = change["_lsn"]
    assert told == expected, f"{told} instead of {expected}"


def feed(container, **options):
    """All that there is now, and the position behind it."""
    changes = list(container.query_items_change_feed(**options))
    return changes, container.client_connection.last_response_headers["etag"]


def new_container(world, name):
    return world.database.create_container(name, PartitionKey("/pk"), offer_throughput=world.throughput)


def change_feed_from_the_beginning(world):
    container = new_container(world, "changes")
    assert feed(container, start_time="Beginning")[0] == []
    writer = Writer(container)
    writer.write_some(0)
    expected = writer.take()
    for size in [None, 100, 3, 1]:
        changes, _ = feed(container, start_time="Beginning", max_item_count=size)
        check(changes, expected)
    assert all(change["_ts"] and change["_etag"] and change["_rid"] for change in changes)


def change_feed_goes_on_from_its_continuation(world):
    container = new_container(world, "continued")
    writer = Writer(container)
    writer.write_some(0)
    # A token that names ranges not read yet is one that this SDK cannot read itself: pages of one range each.
    pages = [page for each in container.read_feed_ranges() for page in pages_by_their_tokens(container, each)]
    assert all(len(page) <= 2 for page in pages)
    check([change for page in pages for change in page], writer.take())
    _, position = feed(container, start_time="Beginning")
    for round in range(1, 3):
        writer.write_some(10 * round)
        changes, position = feed(container, continuation=position)
        check(changes, writer.take())
    assert feed(container, continuation=position)[0] == []
    # The delete of an item that was told before is no change in this mode.
    writer.delete(1)
    assert feed(container, continuation=position)[0] == []


def pages_by_their_tokens(container, feed_range):
    """Each page by an iterator of its own."""
    pages = container.query_items_change_feed(start_time="Beginning", feed_range=feed_range, max_item_count=2).by_page()
    while page := list(next(pages, [])):
        yield page
        pages = container.query_items_change_feed(continuation=pages.continuation_token, max_item_count=2).by_page()


def change_feed_from_now(world):
    container = new_container(world, "now")
    writer = Writer(container)
    writer.write_some(0)
    writer.take()
    changes, position = feed(container, start_time="Now")
    assert changes == []
    writer.write_some(2)
    changes, position = feed(container, continuation=position)
    check(changes, writer.take())
    assert feed(container, continuation=position)[0] == []


def write_at_two_times(writer):
    """Writes before and after a moment that it returns; `take` knows what was after it."""
    writer.write_some(0)
    before = writer.put(0, 3)["_ts"]
    # Times of changes are whole seconds; two of them leave one without a change in between.
    while writer.put(0, 4)["_ts"] < before + 2:
        time.sleep(0.1)
    writer.take()
    writer.put(0, 5)
    writer.write_some(20)
    return datetime.fromtimestamp(before + 1, timezone.utc)


def change_feed_from_a_point_in_time(world):
    container = new_container(world, "since")
    writer = Writer(container)
    moment = write_at_two_times(writer)
    # This SDK cannot read its own token of a feed that began at a time; the iterator itself goes on.
    pages = container.query_items_change_feed(start_time=moment, max_item_count=4).by_page()
    check([change for page in pages for change in page], writer.take())
    assert list(pages) == []
    writer.write_some(1)
    check([change for page in pages for change in page], writer.take())
    assert list(pages) == []


def change_feed_of_one_key(world):
    container = world.database.get_container_client("continued")
    whole, _ = feed(container, start_time="Beginning")
    for key in [f"key {at}" for at in range(KEYS)]:
        changes, position = feed(container, start_time="Beginning", partition_key=key, max_item_count=2)
        assert changes == [change for change in whole if change["pk"] == key] != []
        assert feed(container, continuation=position)[0] == []
    writer = Writer(container)
    _, position = feed(container, start_time="Now", partition_key="key 3")
    writer.write_some(100)
    changes, _ = feed(container, continuation=position)
    check(changes, {"key 3": writer.take()["key 3"]})


def change_feed_of_feed_ranges(world):
    container = world.database.get_container_client("continued")
    whole, _ = feed(container, start_time="Beginning")
    ranges = list(container.read_feed_ranges())
    assert len(ranges) == world.partitions
    told = [feed(container, start_time="Beginning", feed_range=each, max_item_count=5) for each in ranges]
    by_id = {change["id"]: change for changes, _ in told for change in changes}
    assert by_id == {change["id"]: change for change in whole}
    assert sum(len(changes) for changes, _ in told) == len(whole)
    for changes, _ in told:
        positions = [change["_lsn"] for change in changes]
        assert positions == sorted(set(positions)), "not in the order of commits"
    writer = Writer(container)
    writer.write_some(200)
    check([change for _, at in told for change in feed(container, continuation=at)[0]], writer.take())


def change_feed_of_the_asynchronous_client(world):
    asyncio.run(read_asynchronously(world))


async def read_asynchronously(world):
    expected, _ = feed(world.database.get_container_client("changes"), start_time="Beginning")
    async with AsyncClient(world.endpoint, world.key, connection_verify=False) as client:
        container = client.get_database_client(world.name).get_container_client("changes")
        changes = [change async for change in container.query_items_change_feed(start_time="Beginning", max_item_count=3)]
        position = container.client_connection.last_response_headers["etag"]
        assert sorted(changes, key=lambda change: change["id"]) == sorted(expected, key=lambda change: change["id"])
        assert [change async for change in container.query_items_change_feed(continuation=position)] == []


def change_feed_goes_on_through_splits(world):
    """More throughput than the partitions can have makes the server split them all."""
    container = new_container(world, "splitting")
    writer = Writer(container)
    _, position = feed(container, start_time="Now")
    number, after, deadline = 0, 0, time.monotonic() + PATIENCE_SECONDS
    while after < 2 * KEYS:
        assert time.monotonic() < deadline, "no split"
        if number == KEYS:
            container.replace_throughput(10000 * world.partitions + 1000)
        writer.put(number % (2 * KEYS), number)
        number += 1
        changes, position = feed(container, continuation=position, max_item_count=3)
        check(changes, writer.take())
        after += len(list(container.read_feed_ranges(force_refresh=True))) > world.partitions
    assert feed(container, continuation=position)[0] == []


def change_feed_position_is_kept(world):
    container = new_container(world, "followed")
    writer = Writer(container)
    writer.write_some(0)
    _, position = feed(container, start_time="Beginning")
    for number in [3, 1, 2]:
        writer.put(number, 7)
    world.container.upsert_item({"id": "position", "deviceId": "followed", "position": position})


def verify_change_feed_after_restart(world):
    container = world.database.get_container_client("followed")
    position = world.container.read_item("position", "followed")["position"]
    changes, position = feed(container, continuation=position)
    check(changes, {f"key {number}": [(f"{number}", 7)] for number in [1, 2, 3]})
    writer = Writer(container)
    writer.write_some(30)
    changes, position = feed(container, continuation=position)
    check(changes, writer.take())
    assert feed(container, continuation=position)[0] == []
    ids = [change["id"] for change in feed(container, start_time="Beginning")[0]]
    assert len(ids) == len(set(ids)) and set(ids) == {item["id"] for item in container.read_all_items()}


CASES = [
    change_feed_from_the_beginning,
    change_feed_goes_on_from_its_continuation,
    change_feed_from_now,
    change_feed_from_a_point_in_time,
    change_feed_of_one_key,
    change_feed_of_feed_ranges,
    change_feed_of_the_asynchronous_client,
    change_feed_goes_on_through_splits,
    change_feed_position_is_kept,
]
