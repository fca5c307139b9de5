"""Rows that nothing sorts, with the official Python SDK: cases of conformance.py.

They come as their items were created: across the keys of a physical partition, inside each key, and
where the values that sort them are equal.
"""

import json
from urllib.request import Request, urlopen

from azure.cosmos import PartitionKey

# The ids, as they are created: neither they nor their keys are in any other order.
LETTERS = "mzakqcxbtehwdnyfuljrgp"
KEYS = 5
# What many small pages cost in a second; a container with that still has one partition.
ONE_PARTITION_MAX = 6000

UNSORTED = ["SELECT * FROM c", "SELECT * FROM c WHERE c.same = 1", "SELECT * FROM c WHERE c.code > 0"]
TIES = "SELECT * FROM c ORDER BY c.same"


def key_of(letter):
    return f"key {LETTERS.index(letter) * 3 % KEYS}"


def item(letter, version=0):
    return {"id": letter, "pk": key_of(letter), "same": 1, "code": ord(letter), "version": version}


def create(container, letters):
    for letter in letters:
        container.create_item(item(letter))
    return letters


def new_container(world, name):
    return world.database.create_container(name, PartitionKey("/pk"), offer_throughput=ONE_PARTITION_MAX)


def read(rows):
    return "".join(row["id"] for row in rows)


def resumed(start):
    """Each page by an iterator of its own, which is given the token of the page before."""
    letters, token = "", None
    while True:
        pages = start().by_page(token)
        letters += read(next(pages))
        token = pages.continuation_token
        if token is None:
            return letters


def every_way(container, **scope):
    """The letters that each way of reading gives, in one page and in pages of two."""
    for size in [None, 2]:
        for text in [*UNSORTED, TIES]:
            yield f"{text} in pages of {size}", read(container.query_items(text, max_item_count=size, **scope))
    # The token of a query that this SDK merges is behind rows that it has fetched and not given yet.
    for text in [*UNSORTED, TIES] if "partition_key" in scope else UNSORTED:
        yield f"{text}, resumed", resumed(lambda: container.query_items(text, max_item_count=2, **scope))
    if "partition_key" not in scope:
        yield "all items", read(container.read_all_items())
        yield "all items, resumed", resumed(lambda: container.read_all_items(max_item_count=2))


def check(container, *sequences, **scope):
    """Each way of reading gives every item once, and those of each sequence in its order."""
    for way, letters in every_way(container, **(scope or {"enable_cross_partition_query": True})):
        found = tuple("".join(letter for letter in letters if letter in sequence) for sequence in sequences)
        assert found == sequences, f"{way}: {letters} instead of {' and '.join(sequences)}"
        assert sorted(letters) == sorted(set("".join(sequences))), f"{way}: {letters}"


def of_key(letters, key):
    return "".join(letter for letter in letters if key_of(letter) == key)


def rows_come_as_their_items_were_created(world):
    container = new_container(world, "created")
    letters = create(container, LETTERS[:14])
    check(container, letters)
    for key in ["key 0", "key 3"]:
        check(container, of_key(letters, key), partition_key=key)
    # Whatever changes an item leaves it where it is.
    container.replace_item("a", item("a", version=1))
    container.upsert_item(item("z", version=1))
    container.patch_item("x", key_of("x"), [{"op": "set", "path": "/version", "value": 1}])
    check(container, letters)
    # An item that is deleted and created again is a new one.
    container.delete_item("k", key_of("k"))
    letters = letters.replace("k", "") + create(container, "k")
    check(container, letters)
    check(container, of_key(letters, key_of("k")), partition_key=key_of("k"))


def operate(world, verb, **body):
    """Changes a layout as an operator would, and gives back the ids of the new ranges. The server's one port
    takes plain requests as well."""
    address = f"{world.endpoint.replace('https:', 'http:')}_orrery/{verb}"
    headers = {"Authorization": f"Bearer {world.key}", "Content-Type": "application/json"}
    with urlopen(Request(address, json.dumps(body).encode(), headers)) as answer:
        return [each["id"] for each in json.load(answer)["new"]]


def by_range(container, letters):
    """The letters of each range, which must come in the same order among themselves."""
    parts = []
    for feed_range in container.read_feed_ranges(force_refresh=True):
        queries = [container.query_items(text, feed_range=feed_range, max_item_count=2) for text in [*UNSORTED, TIES]]
        found = [read(rows) for rows in queries]
        part = "".join(letter for letter in letters if letter in found[0])
        assert set(found) == {part}, f"{found} instead of {part}"
        parts.append(part)
    return parts


def rows_keep_their_order_through_splits_and_merges(world):
    container = new_container(world, "moved")
    link = container.container_link
    letters = create(container, LETTERS[:10])
    children = operate(world, "split", container=link, range="0")
    assert len(by_range(container, letters)) == 2
    letters += create(container, LETTERS[10:16])
    left, right = by_range(container, letters)
    assert len(left) > 3 and len(right) > 3, f"{left} and {right}"
    check(container, left, right)
    assert len(operate(world, "merge", container=link, ranges=children)) == 1
    # A client that still knows the old ranges asks for them first, and learns of the new one.
    check(container, left, right)
    later = create(container, LETTERS[16:20])
    check(container, left + later, right + later)
    world.container.upsert_item({"id": "order", "deviceId": "order", "sequences": [left + later, right + later]})


def verify_order_after_restart(world):
    container = world.database.get_container_client("created")
    check(container, LETTERS[:14].replace("k", "") + "k" + create(container, LETTERS[14:16]))
    container = world.database.get_container_client("moved")
    sequences = world.container.read_item("order", "order")["sequences"]
    later = create(container, LETTERS[20:])
    check(container, *(sequence + later for sequence in sequences))


CASES = [rows_come_as_their_items_were_created, rows_keep_their_order_through_splits_and_merges]
