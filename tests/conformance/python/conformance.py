"""The official Python SDK, unmodified, against a running Orrery.

Usage: conformance.py ENDPOINT KEY PARTITIONS [write|verify]

`write` runs everything and leaves some items behind; `verify` runs after a
restart and expects them. Each case prints `ok NAME` or `FAILED NAME: why`, and
the last line counts them. The SDK checks no certificate on localhost and 127.0.0.1,
whatever it is told, so one case looks at the server's certificate by itself: it must
be the one in the file that the variable ORRERY_CERTIFICATE names.
"""

import asyncio
import os
import socket
import ssl
import sys
import uuid
import warnings
from urllib.parse import urlsplit

import bearer
import changes
import order
import parity
import versions
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties, exceptions
from azure.cosmos.aio import CosmosClient as AsyncClient
from azure.cosmos.http_constants import HttpHeaders

ENDPOINT, KEY, PARTITIONS = sys.argv[1], sys.argv[2], int(sys.argv[3])
MODE = sys.argv[4] if len(sys.argv) > 4 else "write"
THROUGHPUT = 400 if PARTITIONS == 1 else 6000 * PARTITIONS
CASES = []


def case(function):
    """Registers a case under the name of its function."""
    CASES.append(function)
    return function


def refused(status, call, *arguments, substatus=None, **options):
    """The call must fail with this status; returns the error."""
    try:
        call(*arguments, **options)
    except exceptions.CosmosHttpResponseError as error:
        assert error.status_code == status, f"{error.status_code} instead of {status}: {error.message}"
        if substatus is not None:
            assert error.sub_status == substatus, f"substatus {error.sub_status} instead of {substatus}"
        return error
    raise AssertionError(f"not refused with {status}")


def client():
    return CosmosClient(ENDPOINT, KEY, connection_verify=False)


class World:
    """What the cases share: one client, the articles' database and container."""

    def __init__(self):
        self.endpoint, self.key, self.partitions, self.throughput = ENDPOINT, KEY, PARTITIONS, THROUGHPUT
        self.client = client()
        self.name = f"py{PARTITIONS}"
        self.database = self.client.get_database_client(self.name)
        self.container = self.database.get_container_client("coll")


@case
def sample_1_create_database(world):
    world.database = world.client.create_database(world.name)
    assert world.database.read()["id"] == world.name
    refused(409, world.client.create_database, world.name)


@case
def sample_2_create_container_with_key_and_throughput(world):
    world.container = world.database.create_container(
        "coll", PartitionKey("/deviceId"), offer_throughput=THROUGHPUT)
    definition = world.container.read()
    assert definition["partitionKey"]["paths"] == ["/deviceId"]
    assert definition["partitionKey"]["kind"] == "Hash"
    assert definition["indexingPolicy"]["indexingMode"] == "consistent"
    ranges = list(world.container.client_connection._ReadPartitionKeyRanges(world.container.container_link))
    assert len(ranges) == PARTITIONS, f"{len(ranges)} ranges"
    assert ranges[0]["minInclusive"] == "" and ranges[-1]["maxExclusive"] == "FF"


READING = {"id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricType": "Temperature", "metricValue": 105.0,
           "unit": "Fahrenheit", "readingTime": "2026-11-15T10:00:00Z"}


@case
def sample_3_create_item(world):
    created = world.container.create_item(READING)
    assert created["metricValue"] == 105.0 and created["_rid"] and created["_etag"] and created["_ts"]
    refused(409, world.container.create_item, READING)


@case
def sample_4_read_by_key_and_id(world):
    read = world.container.read_item("XMS-001-FE24C", partition_key="XMS-0001")
    assert {name: read[name] for name in READING} == READING
    refused(404, world.container.read_item, "XMS-001-FE24C", partition_key="XMS-0002")
    refused(404, world.container.read_item, "nothing", partition_key="XMS-0001")


@case
def sample_5_replace(world):
    replaced = world.container.replace_item("XMS-001-FE24C", {**READING, "metricValue": 104})
    assert replaced["metricValue"] == 104
    assert world.container.read_item("XMS-001-FE24C", "XMS-0001")["metricValue"] == 104


@case
def sample_6_delete(world):
    world.container.delete_item("XMS-001-FE24C", partition_key="XMS-0001")
    refused(404, world.container.read_item, "XMS-001-FE24C", partition_key="XMS-0001")
    refused(404, world.container.delete_item, "XMS-001-FE24C", partition_key="XMS-0001")


# Readings of ten devices, every second one a temperature.
READINGS = [{"id": f"{device}-{n}", "deviceId": f"XMS-{device:04}", "metricType": "Humidity" if n % 2 else "Temperature",
             "metricValue": 80 + (device * 37 + n * 11) % 50} for device in range(1, 11) for n in range(12)]
TEMPERATURES = [reading for reading in READINGS if reading["metricType"] == "Temperature"]
HOT = [reading for reading in TEMPERATURES if reading["metricValue"] > 100]
HOT_ONES = 'SELECT * FROM root WHERE root["metricType"] = "Temperature" AND root["metricValue"] > 100'


def query(container, text, **options):
    """The rows of a query, and the partitions that were asked for them, which session tokens name."""
    partitions = set()

    def note(headers, _):
        partitions.update(part.split(":")[0] for part in headers[HttpHeaders.SessionToken].split(","))

    return list(container.query_items(text, response_hook=note, **options)), partitions


def ids(items):
    return [item["id"] for item in items]


@case
def sample_7_query_by_key_asks_one_partition(world):
    container = world.database.create_container("readings", PartitionKey("/deviceId"), offer_throughput=THROUGHPUT)
    for reading in READINGS:
        container.create_item(reading)
    text = 'SELECT * FROM root WHERE root["metricType"] = @type AND root["deviceId"] = @device'
    parameters = [{"name": "@type", "value": "Temperature"}, {"name": "@device", "value": "XMS-0001"}]
    expected = sorted(ids(each for each in TEMPERATURES if each["deviceId"] == "XMS-0001"))
    for options in [{}, {"enable_cross_partition_query": True}, {"partition_key": "XMS-0001"}]:
        rows, partitions = query(container, text, parameters=parameters, **options)
        assert sorted(ids(rows)) == expected and len(partitions) == 1, (ids(rows), partitions)


@case
def sample_8_query_across_partitions(world):
    container = world.database.get_container_client("readings")
    rows, partitions = query(container, HOT_ONES, enable_cross_partition_query=True)
    assert sorted(ids(rows)) == sorted(ids(HOT)) and len(partitions) == PARTITIONS, partitions
    error = refused(400, list, container.query_items(HOT_ONES))
    assert "Cross partition query is required but disabled" in error.message, error.message


@case
def sample_9_query_in_order(world):
    container = world.database.get_container_client("readings")
    text = HOT_ONES + ' ORDER BY root["metricValue"]'
    serial, partitions = query(container, text, enable_cross_partition_query=True)  # this SDK knows no parallelism
    values = [row["metricValue"] for row in serial]
    assert values == sorted(row["metricValue"] for row in HOT) and len(partitions) == PARTITIONS
    paged, _ = query(container, text, enable_cross_partition_query=True, max_item_count=7)
    assert ids(paged) == ids(serial)
    backwards, _ = query(container, text + " DESC", enable_cross_partition_query=True, max_item_count=1)
    assert [row["metricValue"] for row in backwards] == values[::-1]
    top, _ = query(container, text.replace("SELECT", "SELECT TOP 10"), enable_cross_partition_query=True)
    assert ids(top) == ids(serial)[:10]


@case
def sample_10_execute_stored_procedure(world):
    scripts, name = world.container.scripts, "SetLatestStateAcrossReadings"
    with open(os.path.join(os.environ["ORRERY_SCRIPTS"], f"{name}.js"), encoding="utf-8") as file:
        scripts.create_stored_procedure({"id": name, "body": file.read()})
    ours, older = "XMS-001-FE24C", "XMS-001-FE24B"
    for reading in [ours, older]:
        world.container.create_item({"id": reading, "deviceId": "XMS-0001", "metricType": "Temperature", "isLatest": True})

    def execute(key):
        return scripts.execute_stored_procedure(name, partition_key=key, params=[ours])

    # To the letter the article names a key that no device has.
    assert execute("XMS-001") == {"latest": None, "outdated": 0}
    assert execute("XMS-0001") == {"latest": ours, "outdated": 1}
    latest = [world.container.read_item(reading, "XMS-0001")["isLatest"] for reading in [ours, older]]
    assert latest == [True, False]
    for reading in [ours, older]:
        world.container.delete_item(reading, "XMS-0001")
    scripts.delete_stored_procedure(name)


@case
def aggregates_groups_and_pages_across_partitions(world):
    container = world.database.get_container_client("readings")

    def rows(text, **options):
        return query(container, text, enable_cross_partition_query=True, **options)[0]

    assert rows("SELECT VALUE COUNT(1) FROM c") == [len(READINGS)]
    assert rows("SELECT VALUE MAX(c.metricValue) FROM c") == [max(each["metricValue"] for each in READINGS)]
    assert sorted(rows("SELECT DISTINCT VALUE c.metricType FROM c")) == ["Humidity", "Temperature"]
    by_type = "SELECT c.metricType, COUNT(1) AS many FROM c GROUP BY c.metricType"
    refused(400, rows, by_type)  # this SDK merges no groups, so the service leaves it alone with them
    of_device = query(container, by_type, partition_key="XMS-0001")[0]
    assert sorted((each["metricType"], each["many"]) for each in of_device) == [("Humidity", 6), ("Temperature", 6)]
    by_id = sorted(ids(READINGS))
    assert ids(rows("SELECT c.id FROM c ORDER BY c.id OFFSET 30 LIMIT 20", max_item_count=6)) == by_id[30:50]


@case
def pages_of_a_query_go_on_from_their_token(world):
    container = world.database.get_container_client("readings")
    options = {"enable_cross_partition_query": True, "max_item_count": 7}
    whole = ids(container.query_items(HOT_ONES, **options))
    pages = container.query_items(HOT_ONES, **options).by_page()
    first = ids(next(pages))
    rest = container.query_items(HOT_ONES, **options).by_page(pages.continuation_token)
    assert first + [each["id"] for page in rest for each in page] == whole and len(first) == 7


@case
def wrong_queries_are_refused(world):
    container = world.database.get_container_client("readings")
    for text, reason in [("SELECT * FORM c", "SC1001"), ("SELECT NOTHING(c.id) FROM c", "SC2005"),
                         ("SELECT * FROM c ORDER BY c.a, c.b", "composite index")]:
        error = refused(400, list, container.query_items(text, enable_cross_partition_query=True))
        assert reason in error.message, error.message


@case
def same_id_under_two_keys(world):
    for key in ["a", "b"]:
        world.container.upsert_item({"id": "same", "deviceId": key, "of": key})
    assert [world.container.read_item("same", key)["of"] for key in ["a", "b"]] == ["a", "b"]


@case
def upsert_creates_and_replaces(world):
    item = {"id": "up", "deviceId": "u", "n": 1}
    first = world.container.upsert_item(item)
    second = world.container.upsert_item({**item, "n": 2})
    assert first["_rid"] == second["_rid"] and first["_etag"] != second["_etag"] and second["n"] == 2


@case
def items_can_be_named_by_themselves(world):
    created = world.container.create_item({"id": "self", "deviceId": "s", "n": 1})
    assert world.container.read_item(created, partition_key="s")["n"] == 1
    replaced = world.container.replace_item(created, {**created, "n": 2})
    world.container.delete_item(replaced, partition_key="s")
    refused(404, world.container.read_item, created, partition_key="s")


@case
def every_type_of_key(world):
    for key in ["text", "", 1, 1.5, -3, True, False, None, "ünï 🚀", "a/b\\c\"d", "x" * 500]:
        item_id = uuid.uuid4().hex
        world.container.create_item({"id": item_id, "deviceId": key})
        assert world.container.read_item(item_id, partition_key=key)["deviceId"] == key
    item_id = uuid.uuid4().hex
    world.container.create_item({"id": item_id})
    from azure.cosmos.partition_key import NonePartitionKeyValue
    assert world.container.read_item(item_id, partition_key=NonePartitionKeyValue)["id"] == item_id


@case
def odd_ids(world):
    for item_id in ["with space", "plus+", "per%cent", "quote'\"", "ünï", "semi;colon", "a.b", "x" * 255, "(1)"]:
        world.container.upsert_item({"id": item_id, "deviceId": "odd"})
        assert world.container.read_item(item_id, "odd")["id"] == item_id
        world.container.delete_item(item_id, "odd")


@case
def items_by_resource_id(world):
    created = world.container.create_item({"id": "by rid", "deviceId": "r"})
    # Given an item instead of an id, the SDK takes the item's own link, which is made of resource ids.
    assert world.container.read_item(created, "r")["id"] == "by rid"
    world.container.delete_item(created, "r")
    refused(404, world.container.read_item, created, "r")


@case
def the_asynchronous_client(world):
    asyncio.run(write_and_read(world))


async def write_and_read(world):
    async with AsyncClient(ENDPOINT, KEY, connection_verify=False) as asynchronous:
        container = asynchronous.get_database_client(world.name).get_container_client("coll")
        await container.upsert_item({"id": "async", "deviceId": "a", "n": 1})
        assert (await container.read_item("async", "a"))["n"] == 1
        await container.delete_item("async", "a")


@case
def etags_guard_writes(world):
    from azure.core import MatchConditions
    created = world.container.create_item({"id": "guarded", "deviceId": "e", "n": 1})
    world.container.replace_item("guarded", {**created, "n": 2}, etag=created["_etag"],
                                 match_condition=MatchConditions.IfNotModified)
    refused(412, world.container.replace_item, "guarded", {**created, "n": 3}, etag=created["_etag"],
            match_condition=MatchConditions.IfNotModified)
    assert world.container.read_item("guarded", "e")["n"] == 2
    refused(412, world.container.delete_item, "guarded", "e", etag=created["_etag"],
            match_condition=MatchConditions.IfNotModified)
    world.container.delete_item("guarded", "e")


@case
def patch_every_operation(world):
    world.container.create_item({"id": "p", "deviceId": "p", "n": 1, "list": [1, 3], "gone": 1, "from": 7})
    patched = world.container.patch_item("p", "p", [
        {"op": "add", "path": "/list/1", "value": 2}, {"op": "set", "path": "/new", "value": {"deep": [1]}},
        {"op": "replace", "path": "/n", "value": 5}, {"op": "remove", "path": "/gone"},
        {"op": "incr", "path": "/n", "value": 2.5}, {"op": "move", "from": "/from", "path": "/to"}])
    assert patched["list"] == [1, 2, 3] and patched["n"] == 7.5 and patched["new"] == {"deep": [1]}
    assert "gone" not in patched and "from" not in patched and patched["to"] == 7
    only = [{"op": "set", "path": "/n", "value": 0}]
    refused(412, world.container.patch_item, "p", "p", only, filter_predicate="from c where c.n = 1")
    assert world.container.patch_item("p", "p", only, filter_predicate="from c where c.n = 7.5")["n"] == 0
    refused(400, world.container.patch_item, "p", "p", [{"op": "set", "path": "/deviceId", "value": "q"}])
    refused(400, world.container.patch_item, "p", "p", [{"op": "remove", "path": "/nothing"}])
    refused(404, world.container.patch_item, "nothing", "p", only)


@case
def batch_is_all_or_nothing(world):
    from azure.cosmos.exceptions import CosmosBatchOperationError
    results = world.container.execute_item_batch([
        ("create", ({"id": "b1", "deviceId": "batch", "n": 1},)), ("upsert", ({"id": "b2", "deviceId": "batch"},)),
        ("patch", ("b1", [{"op": "incr", "path": "/n", "value": 1}])), ("read", ("b1",)), ("delete", ("b2",)),
    ], partition_key="batch")
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 204]
    assert results[3]["resourceBody"]["n"] == 2
    try:
        world.container.execute_item_batch(
            [("create", ({"id": "b3", "deviceId": "batch"},)), ("create", ({"id": "b1", "deviceId": "batch"},))],
            partition_key="batch")
        raise AssertionError("not refused")
    except CosmosBatchOperationError as error:
        assert error.error_index == 1
        assert [result["statusCode"] for result in error.operation_responses] == [424, 409]
    refused(404, world.container.read_item, "b3", "batch")


@case
def key_of_item_must_match(world):
    refused(404, world.container.replace_item, "b1", {"id": "b1", "deviceId": "elsewhere"})
    refused(400, world.container.create_item, {"id": "array", "deviceId": [1]})


@case
def empty_ids_are_refused(world):
    refused(400, world.container.create_item, {"id": "", "deviceId": "x"})


@case
def too_large_and_too_deep_are_refused(world):
    refused(413, world.container.create_item, {"id": "large", "deviceId": "x", "text": "x" * (2 << 20)})
    deep = []
    for _ in range(130):
        deep = [deep]
    refused(400, world.container.create_item, {"id": "deep", "deviceId": "x", "deep": deep})


@case
def lists_come_in_pages(world):
    container = world.database.create_container("pages", PartitionKey("/pk"), offer_throughput=THROUGHPUT)
    for number in range(57):
        container.create_item({"id": f"{number}", "pk": f"key {number % 13}"})
    pages = [list(page) for page in container.read_all_items(max_item_count=10).by_page()]
    assert all(len(page) <= 10 for page in pages)
    assert sorted(int(item["id"]) for page in pages for item in page) == list(range(57))


@case
def no_response_body_when_not_wanted(world):
    item = {"id": "quiet", "deviceId": "q"}
    answer = world.container.upsert_item(item, no_response=True)
    assert dict(answer) == {} and answer.get_response_headers()["etag"]
    assert world.container.read_item("quiet", "q")["id"] == "quiet"


@case
def headers_tell_the_truth(world):
    seen = {}
    world.container.upsert_item({"id": "h", "deviceId": "h"}, response_hook=lambda headers, _: seen.update(headers))
    range_id, _, lsn = seen[HttpHeaders.SessionToken].partition(":-1#")
    assert seen["x-ms-documentdb-partitionkeyrangeid"] == range_id and int(lsn) > 0
    assert float(seen[HttpHeaders.RequestCharge]) > 1
    world.container.upsert_item({"id": "h", "deviceId": "h"}, response_hook=lambda headers, _: seen.update(headers))
    assert int(seen[HttpHeaders.SessionToken].partition(":-1#")[2]) > int(lsn)


@case
def hierarchical_keys(world):
    container = world.database.create_container(
        "tree", PartitionKey(path=["/tenant", "/user"], kind="MultiHash"), offer_throughput=THROUGHPUT)
    container.create_item({"id": "1", "tenant": "t", "user": "u"})
    assert container.read_item("1", partition_key=["t", "u"])["user"] == "u"
    refused(404, container.read_item, "1", partition_key=["t", "v"])


@case
def containers_live_and_change(world):
    container = world.database.create_container(
        "life", PartitionKey("/pk"), default_ttl=3600, unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    container.create_item({"id": "1", "pk": "a", "email": "x"})
    refused(409, container.create_item, {"id": "2", "pk": "a", "email": "x"})
    container.create_item({"id": "2", "pk": "b", "email": "x"})
    # Unique keys cannot change, and leaving them out would change them.
    refused(400, world.database.replace_container, container, PartitionKey("/pk"), default_ttl=60)
    changed = world.database.replace_container(world.container, PartitionKey("/deviceId"), default_ttl=3600)
    assert changed.read()["defaultTtl"] == 3600
    refused(400, world.database.replace_container, world.container, PartitionKey("/other"))
    assert "life" in [each["id"] for each in world.database.list_containers()]
    world.database.delete_container("life")
    refused(404, container.read)
    refused(404, container.read_item, "1", "a")


@case
def throughput_is_read_and_replaced(world):
    assert world.container.get_throughput().offer_throughput == THROUGHPUT
    world.container.replace_throughput(THROUGHPUT + 100)
    assert world.container.get_throughput().offer_throughput == THROUGHPUT + 100
    refused(400, world.container.replace_throughput, 450)
    refused(400, world.database.create_container, "bad", PartitionKey("/pk"), offer_throughput=50)


@case
def autoscale_is_read_and_replaced(world):
    wanted = ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=2)
    container = world.database.create_container("scaling", PartitionKey("/pk"), offer_throughput=wanted)
    offer = container.get_throughput()
    assert (offer.auto_scale_max_throughput, offer.auto_scale_increment_percent) == (5000, 2)
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000, auto_scale_increment_percent=0))
    assert container.get_throughput().auto_scale_max_throughput == 7000


@case
def there_are_no_conflicts(world):
    assert list(world.container.list_conflicts()) == []


@case
def users_and_permissions(world):
    user = world.database.create_user({"id": "someone"})
    permission = user.create_permission(
        {"id": "reads", "permissionMode": "Read", "resource": world.container.container_link})
    assert permission.permission_mode == "Read"
    assert [each["id"] for each in user.list_permissions()] == ["reads"]
    user.delete_permission("reads")
    world.database.delete_user("someone")
    refused(404, user.read)


@case
def scripts_are_kept(world):
    scripts = world.container.scripts
    scripts.create_stored_procedure({"id": "sp", "body": "function () {}"})
    scripts.create_trigger({"id": "tr", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"})
    scripts.create_user_defined_function({"id": "fn", "body": "function () {}"})
    assert scripts.get_stored_procedure("sp")["body"] == "function () {}"
    assert scripts.replace_stored_procedure("sp", {"id": "sp", "body": "function f() {}"})["body"] == "function f() {}"
    assert [each["id"] for each in scripts.list_triggers()] == ["tr"]
    scripts.delete_trigger("tr")
    scripts.delete_user_defined_function("fn")
    scripts.delete_stored_procedure("sp")
    refused(404, scripts.get_stored_procedure, "sp")


@case
def wrong_keys_are_refused(world):
    try:
        CosmosClient(ENDPOINT, "d3Jvbmcgd3Jvbmcgd3Jvbmc=", connection_verify=False)
        raise AssertionError("let in")
    except exceptions.CosmosHttpResponseError as error:
        assert error.status_code == 401, error.status_code


def the_certificate_can_be_trusted(_world):
    context = ssl.create_default_context(cafile=os.environ["ORRERY_CERTIFICATE"])
    host, port = urlsplit(ENDPOINT).hostname, urlsplit(ENDPOINT).port
    for name in [host, "localhost"]:
        with socket.create_connection((host, port)) as plain, context.wrap_socket(plain, server_hostname=name) as tls:
            assert tls.getpeercert()["subjectAltName"]


if ENDPOINT.startswith("https"):
    case(the_certificate_can_be_trusted)
    CASES.extend(bearer.CASES)


CASES.extend(changes.CASES)
CASES.extend(versions.CASES)
CASES.extend(parity.CASES)
CASES.extend(order.CASES)


@case
def what_was_written_stays(world):
    container = world.database.create_container("kept", PartitionKey("/pk"), offer_throughput=THROUGHPUT)
    for number in range(100):
        container.create_item({"id": f"{number}", "pk": f"{number % 7}", "n": number})


def verify_after_restart(world):
    container = world.database.get_container_client("kept")
    for number in range(100):
        assert container.read_item(f"{number}", f"{number % 7}")["n"] == number
    assert world.container.get_throughput().offer_throughput == THROUGHPUT + 100
    created = container.create_item({"id": "after", "pk": "restart"})
    assert created["_rid"] not in [item["_rid"] for item in container.read_all_items() if item["id"] != "after"]
    container.delete_item("after", "restart")


def main():
    warnings.filterwarnings("ignore", message="Unverified HTTPS request")
    world = World()
    failures = 0
    verifying = [
        verify_after_restart,
        changes.verify_change_feed_after_restart,
        versions.verify_all_versions_after_restart,
        order.verify_order_after_restart,
    ]
    cases = verifying if MODE == "verify" else CASES
    for each in cases:
        try:
            each(world)
            print(f"ok {each.__name__}", flush=True)
        except Exception as error:  # every failure is reported, whatever it is
            failures += 1
            print(f"FAILED {each.__name__}: {type(error).__name__}: {str(error)[:400]}", flush=True)
    print(f"{len(cases) - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)


main()
