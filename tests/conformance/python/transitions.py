"""The official Python SDK, unmodified, while its partitions split and merge.

Usage: transitions.py ENDPOINT KEY DATABASE SECONDS

Writes, reads, lists, batches and bulk-like bursts go on for SECONDS while
somebody else changes the layout of the container `DATABASE/life`. There is no error handling around the SDK: an
error that reaches this program is a failure. Each worker owns some keys and knows
what it was told: at the end every acknowledged write must be there and nothing
else. One more client follows the change feed meanwhile, each page from the token of
the page before: every version comes once, and the last ones are those that are there.
Where the SDK itself makes a token that covers something twice, it begins anew.
The last line is a JSON object with what was counted.
"""

import base64
import json
import sys
import threading
import time
import traceback
import warnings

from azure.cosmos import CosmosClient, PartitionKey

ENDPOINT, KEY, DATABASE, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
WORKERS = 4
KEYS_PER_WORKER = 12
IDS_PER_KEY = 40


class Worker(threading.Thread):
    """One client with keys of its own, and a model of what they hold."""

    def __init__(self, number, until):
        super().__init__(name=f"worker-{number}")
        self.number, self.until = number, until
        client = CosmosClient(ENDPOINT, KEY, connection_verify=False)
        self.container = client.get_database_client(DATABASE).get_container_client("life")
        self.keys = [f"py-{number}-{at}" for at in range(KEYS_PER_WORKER)]
        self.model = {key: {} for key in self.keys}
        self.lsn = {key: 0 for key in self.keys}
        self.operations = 0
        self.failures = []
        self.turn = 0

    def run(self):
        steps = [self.create, self.upsert, self.replace, self.patch, self.read, self.delete,
                 self.batch, self.burst, self.list_key]
        try:
            while time.monotonic() < self.until:
                self.turn += 1
                key = self.keys[self.turn % len(self.keys)]
                steps[(self.turn * 7 + self.number) % len(steps)](key)
            for key in self.keys:
                self.list_key(key)
        except Exception:
            self.failures.append(traceback.format_exc(limit=-3))

    def expect(self, holds, what):
        if not holds:
            self.failures.append(what)

    def after(self, key, headers):
        """Positions of a key never go back, whoever serves it."""
        self.operations += 1
        token = headers.get("x-ms-session-token", "")
        lsn = int(token.rsplit("#", 1)[-1].rsplit(":", 1)[-1]) if token else 0
        self.expect(lsn >= self.lsn[key], f"{key}: LSN {lsn} after {self.lsn[key]}")
        self.lsn[key] = max(self.lsn[key], lsn)

    def hook(self, key):
        return lambda headers, _: self.after(key, headers)

    def item(self, key, id):
        return {"id": id, "pk": key, "turn": self.turn, "fill": "x" * (self.turn % 300)}

    def known(self, key):
        ids = sorted(self.model[key])
        return ids[self.turn % len(ids)] if ids else None

    def free(self, key):
        return f"i{self.turn % IDS_PER_KEY}"

    def create(self, key):
        id = self.free(key)
        if id in self.model[key]:
            return self.replace(key)
        item = self.item(key, id)
        self.container.create_item(item, response_hook=self.hook(key))
        self.model[key][id] = item

    def upsert(self, key):
        item = self.item(key, self.free(key))
        self.container.upsert_item(item, response_hook=self.hook(key))
        self.model[key][item["id"]] = item

    def replace(self, key):
        if (id := self.known(key)) is not None:
            item = self.item(key, id)
            self.container.replace_item(id, item, response_hook=self.hook(key))
            self.model[key][id] = item

    def patch(self, key):
        if (id := self.known(key)) is not None:
            changes = [{"op": "set", "path": "/turn", "value": self.turn}]
            self.container.patch_item(id, key, changes, response_hook=self.hook(key))
            self.model[key][id] = {**self.model[key][id], "turn": self.turn}

    def read(self, key):
        if (id := self.known(key)) is not None:
            read = self.container.read_item(id, key, response_hook=self.hook(key))
            self.expect(visible(read) == self.model[key][id], f"{key}/{id} reads {visible(read)}")

    def delete(self, key):
        if (id := self.known(key)) is not None and self.turn % 3 == 0:
            self.container.delete_item(id, key, response_hook=self.hook(key))
            del self.model[key][id]

    def batch(self, key):
        """All or nothing, in one logical partition."""
        items = [self.item(key, f"b{at}") for at in range(5)]
        self.container.execute_item_batch([("upsert", (item,)) for item in items], key)
        self.operations += 1
        self.model[key].update({item["id"]: item for item in items})

    def burst(self, key):
        """What bulk loaders do with this SDK: many keys at once."""
        for other in self.keys:
            item = self.item(other, "burst")
            self.container.upsert_item(item, response_hook=self.hook(other))
            self.model[other]["burst"] = item

    def list_key(self, key):
        """The whole feed, filtered here: it goes over every range."""
        listed = {}
        for item in self.container.read_all_items(max_item_count=200):
            if item["pk"] == key:
                self.expect(item["id"] not in listed, f"{key}/{item['id']} listed twice")
                listed[item["id"]] = visible(item)
        self.operations += 1
        self.expect(listed == self.model[key], f"{key}: listed {difference(listed, self.model[key])}")


class Follower(threading.Thread):
    """Reads the change feed until nothing new comes after it was told to stop."""

    def __init__(self):
        super().__init__(name="follower")
        client = CosmosClient(ENDPOINT, KEY, connection_verify=False)
        self.container = client.get_database_client(DATABASE).get_container_client("life")
        self.changes, self.latest, self.failures = 0, {}, []
        self.stopping = threading.Event()
        self.begin()

    def begin(self):
        self.seen, self.lsn = set(), {}
        self.pages = self.container.query_items_change_feed(start_time="Beginning", max_item_count=50).by_page()

    def run(self):
        try:
            while True:
                stopping = self.stopping.is_set()
                if self.read_page():
                    continue
                if stopping:
                    return
                time.sleep(0.01)
        except Exception:
            self.failures.append(traceback.format_exc(limit=-3))

    def read_page(self):
        changes = list(next(self.pages, []))
        position = self.container.client_connection.last_response_headers["etag"]
        parts = json.loads(base64.b64decode(position))["continuation"]["continuation"]
        if covers_twice(parts):
            self.begin()
            return True
        # The SDK reads no token that names a range without a position; its iterator can go on.
        if all(part["token"] for part in parts):
            self.pages = self.container.query_items_change_feed(continuation=position, max_item_count=50).by_page()
        for change in changes:
            self.take(change)
        return changes

    def take(self, change):
        key, version, lsn = change["pk"], change["_etag"], change["_lsn"]
        if (key, change["id"], version) in self.seen:
            self.failures.append(f"{key}/{change['id']} is told twice as {version}")
        # A batch is one commit: its items have the same position.
        if lsn < self.lsn.get(key, 0):
            self.failures.append(f"{key}: a change at {lsn} after one at {self.lsn[key]}")
        self.changes += 1
        self.seen.add((key, change["id"], version))
        self.lsn[key] = lsn
        self.latest[key, change["id"]] = visible(change)

    def finish(self, workers):
        """Deletes are not told: items may be known that are gone, but none may be missing or old."""
        self.stopping.set()
        self.join()
        for key, items in ((key, items) for worker in workers for key, items in worker.model.items()):
            told = {id: self.latest.get((key, id)) for id in items}
            if told != items:
                self.failures.append(f"{key}: told {difference(told, items)}")


def covers_twice(parts):
    """Whether ranges of a token overlap. After a merge and a split elsewhere the SDK takes over new ranges
    as a whole, even where a part of one belongs to another range of the token, and tells that part twice."""
    bounds = sorted((part["range"]["min"], part["range"]["max"]) for part in parts)
    return any(after[0] < before[1] for before, after in zip(bounds, bounds[1:]))


def visible(item):
    return {name: value for name, value in item.items() if not name.startswith("_")}


def difference(listed, expected):
    lost = sorted(set(expected) - set(listed))
    extra = sorted(set(listed) - set(expected))
    other = [id for id in listed if id in expected and listed[id] != expected[id]]
    return f"lost {lost}, extra {extra}, other {other}"


def main():
    warnings.simplefilter("ignore")
    client = CosmosClient(ENDPOINT, KEY, connection_verify=False)
    database = client.create_database_if_not_exists(DATABASE)
    database.create_container_if_not_exists("life", PartitionKey("/pk"))
    print("begun", flush=True)
    until = time.monotonic() + SECONDS
    workers = [Worker(number, until) for number in range(WORKERS)]
    follower = Follower()
    follower.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    follower.finish(workers)
    failures = [failure for each in [*workers, follower] for failure in each.failures]
    for failure in failures[:10]:
        print(f"FAILED {failure}")
    print(json.dumps({
        "operations": sum(worker.operations for worker in workers),
        "items": sum(len(items) for worker in workers for items in worker.model.values()),
        "changes": follower.changes,
        "failures": len(failures),
    }))
    sys.exit(1 if failures else 0)


main()
