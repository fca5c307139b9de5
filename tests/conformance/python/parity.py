"""What a program notices only when it moves to the service or from it: cases of conformance.py.

Numbers in one form, parameters that nobody gave, rows without a sort value, and the versions
of this SDK that are still in use. `prepare` puts an environment with each of those beside ours.
"""

import subprocess
import sys
from pathlib import Path

from azure.cosmos import PartitionKey

# One run of the older program takes seconds; one that takes this long hangs.
OLDER_SECONDS_MAX = 120


def numbers_have_one_form(world):
    written = {"whole": 5.0, "exact": 9007199254740993, "most": 2**63 - 1, "zero": -0.0, "part": 0.1,
               "large": 12345678901234567890}
    expected = {**written, "large": 1.2345678901234567e19}
    item = {"id": "numbers", "deviceId": 7.0, **written}
    for read in [world.container.create_item(item), world.container.read_item("numbers", 7)]:
        assert {name: read[name] for name in written} == expected, read
        doubles = [name for name in written if isinstance(read[name], float)]
        assert doubles == ["part", "large"] and isinstance(read["deviceId"], int), read
    patched = world.container.patch_item("numbers", 7.0, [
        {"op": "incr", "path": "/whole", "value": 2.0}, {"op": "set", "path": "/new", "value": [1e2]},
        {"op": "incr", "path": "/exact", "value": 1}])
    assert (patched["whole"], patched["new"], patched["exact"]) == (7, [100], 9007199254740994), patched
    found = world.container.query_items(
        "SELECT VALUE c.large FROM c WHERE c.whole = @whole AND c.large = 12345678901234567890",
        parameters=[{"name": "@whole", "value": 7.0}], partition_key=7.0)
    assert list(found) == [1.2345678901234567e19]


def a_parameter_that_nobody_gave_is_undefined(world):
    container = world.database.get_container_client("readings")
    text = "SELECT VALUE c.id FROM c WHERE c.deviceId = 'XMS-0001' AND (NOT IS_DEFINED(@type) OR c.metricType = @type)"
    every = list(container.query_items(text, partition_key="XMS-0001"))
    given = [{"name": "@type", "value": "Humidity"}]
    some = list(container.query_items(text, parameters=given, partition_key="XMS-0001"))
    assert (len(every), len(some)) == (12, 6), (every, some)


def rows_without_a_sort_value_come_first(world):
    """Under one key, where the server sorts: across partitions this SDK sorts only one type."""
    container = world.database.create_container("sorted", PartitionKey("/pk"), offer_throughput=world.throughput)
    values = [{}, {"n": None}, {"n": True}, {"n": 2.5}, {"n": "text"}]
    for number in range(15):
        container.create_item({"id": f"{number:02}", "pk": "mixed", **values[number % 5]})
    expected = [value for value in values for _ in range(3)]
    for direction, rows in [("ASC", expected), ("DESC", expected[::-1])]:
        query = f"SELECT c.n FROM c ORDER BY c.n {direction}"
        assert list(container.query_items(query, partition_key="mixed", max_item_count=2)) == rows


def older_environments():
    """Beside this one: each is named after its package and version."""
    return sorted(Path(sys.prefix).parent.glob("python-*"))


def with_older(folder):
    """A case that runs the older program in an environment, with no slash after the endpoint."""
    def run(world):
        program = [folder / "bin" / "python", "-B", "-W", "ignore", Path(__file__).with_name("older.py")]
        arguments = [world.endpoint.rstrip("/"), world.key, f"{world.name}-{folder.name}"]
        done = subprocess.run([*program, *arguments], text=True, capture_output=True, timeout=OLDER_SECONDS_MAX)
        assert done.returncode == 0, (done.stderr or done.stdout).strip().splitlines()[-1:]

    run.__name__ = folder.name.replace("-", "_").replace(".", "_")
    return run


CASES = [
    numbers_have_one_form,
    a_parameter_that_nobody_gave_is_undefined,
    rows_without_a_sort_value_come_first,
    *map(with_older, older_environments()),
]
