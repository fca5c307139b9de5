// The official JavaScript SDK, unmodified, while its partitions split and merge.
//
// Usage: node transitions.mjs ENDPOINT KEY DATABASE SECONDS
//
// The twin of ../python/transitions.py, which says what is done and why; this one
// also uses the SDK's bulk, which sends by range and so sees ranges go.

import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";

const [endpoint, key, database, seconds] = process.argv.slice(2);
const WORKERS = 4;
const KEYS_PER_WORKER = 12;
const IDS_PER_KEY = 40;
const PATIENCE_MS = 30_000;

class Worker {
  constructor(number, until) {
    this.number = number;
    this.until = until;
    const client = new CosmosClient({ endpoint, key });
    this.container = client.database(database).container("life");
    this.keys = Array.from({ length: KEYS_PER_WORKER }, (_, at) => `js-${number}-${at}`);
    this.model = new Map(this.keys.map((name) => [name, new Map()]));
    this.lsn = new Map(this.keys.map((name) => [name, 0]));
    this.operations = 0;
    this.failures = [];
    this.turn = 0;
  }

  async run() {
    const steps = ["create", "upsert", "replace", "patch", "read", "remove", "batch", "bulk", "list"];
    try {
      while (Date.now() < this.until) {
        this.turn += 1;
        const name = this.keys[this.turn % this.keys.length];
        await this.soon(steps[(this.turn * 7 + this.number) % steps.length], name);
      }
      for (const name of this.keys) await this.soon("list", name);
    } catch (error) {
      this.failures.push(`${error.code}/${error.substatus} ${error.message?.slice(0, 300)}\n${error.stack}`);
    }
  }

  expect(holds, what) {
    if (!holds) this.failures.push(what);
  }

  // Positions of a key never go back, whoever serves it.
  after(name, response) {
    this.operations += 1;
    const token = response.headers?.["x-ms-session-token"];
    if (!token) return;
    const lsn = Number(token.split("#").at(-1).split(":").at(-1));
    this.expect(lsn >= this.lsn.get(name), `${name}: LSN ${lsn} after ${this.lsn.get(name)}`);
    this.lsn.set(name, Math.max(lsn, this.lsn.get(name)));
  }

  item(name, id) {
    return { id, pk: name, turn: this.turn, fill: "x".repeat(this.turn % 300) };
  }

  // Whatever happens to partitions, no operation takes this long. One can: when a second
  // range goes while the SDK still waits for the layout after the first, its bulk takes
  // that layout for the newest, asks no more and never ends. On a machine that is not
  // busy with other things the moment is too short to be met.
  async soon(step, name) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${step} of ${name} does not end`)), PATIENCE_MS);
    });
    try {
      return await Promise.race([this[step](name), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  known(name) {
    const ids = [...this.model.get(name).keys()].sort();
    return ids.length ? ids[this.turn % ids.length] : undefined;
  }

  free() {
    return `i${this.turn % IDS_PER_KEY}`;
  }

  async create(name) {
    const id = this.free();
    if (this.model.get(name).has(id)) return this.replace(name);
    const item = this.item(name, id);
    this.after(name, await this.container.items.create(item));
    this.model.get(name).set(id, item);
  }

  async upsert(name) {
    const item = this.item(name, this.free());
    this.after(name, await this.container.items.upsert(item));
    this.model.get(name).set(item.id, item);
  }

  async replace(name) {
    const id = this.known(name);
    if (id === undefined) return;
    const item = this.item(name, id);
    this.after(name, await this.container.item(id, name).replace(item));
    this.model.get(name).set(id, item);
  }

  async patch(name) {
    const id = this.known(name);
    if (id === undefined) return;
    const changes = [{ op: "set", path: "/turn", value: this.turn }];
    this.after(name, await this.container.item(id, name).patch(changes));
    this.model.get(name).set(id, { ...this.model.get(name).get(id), turn: this.turn });
  }

  async read(name) {
    const id = this.known(name);
    if (id === undefined) return;
    const response = await this.container.item(id, name).read();
    this.after(name, response);
    const expected = this.model.get(name).get(id);
    this.expect(same(response.resource, expected), `${name}/${id} reads ${JSON.stringify(response.resource)}`);
  }

  async remove(name) {
    const id = this.known(name);
    if (id === undefined || this.turn % 3 !== 0) return;
    this.after(name, await this.container.item(id, name).delete());
    this.model.get(name).delete(id);
  }

  async batch(name) {
    const items = [0, 1, 2, 3, 4].map((at) => this.item(name, `b${at}`));
    const operations = items.map((resourceBody) => ({ operationType: "Upsert", resourceBody }));
    const response = await this.container.items.batch(operations, name);
    this.operations += 1;
    this.expect(response.result.every((one) => one.statusCode < 300), `batch: ${JSON.stringify(response.result)}`);
    for (const item of items) this.model.get(name).set(item.id, item);
  }

  async bulk() {
    const items = this.keys.map((name) => this.item(name, "bulk"));
    const operations = items.map((resourceBody) => ({
      operationType: "Upsert", resourceBody, partitionKey: resourceBody.pk,
    }));
    const answers = await this.container.items.executeBulkOperations(operations);
    this.operations += 1;
    for (const [at, answer] of answers.entries()) {
      const code = answer.response?.statusCode;
      this.expect(code === 200 || code === 201, `bulk: ${JSON.stringify(answer.error ?? code).slice(0, 300)}`);
      this.model.get(items[at].pk).set("bulk", items[at]);
    }
  }

  // What is known is there and nothing else. (The SDK lists by a query.)
  async list(name) {
    const { resources } = await this.container.items.readAll({ partitionKey: name, maxItemCount: 10 }).fetchAll();
    this.operations += 1;
    const held = this.model.get(name);
    const listed = new Map(resources.map((stored) => [stored.id, stored]));
    const wrong = [...held].filter(([id, item]) => !same(listed.get(id), item)).map(([id]) => id);
    const right = wrong.length === 0 && listed.size === held.size && resources.length === held.size;
    this.expect(right, `${name}: ${held.size} are known, ${resources.length} listed, wrong: ${wrong}`);
  }
}

// Reads the change feed until nothing new comes after it was told to stop.
class Follower {
  constructor() {
    const client = new CosmosClient({ endpoint, key });
    this.items = client.database(database).container("life").items;
    this.start = ChangeFeedStartFrom.Beginning();
    this.latest = new Map();
    this.seen = new Set();
    this.lsn = new Map();
    this.failures = [];
    this.stopping = false;
  }

  async run() {
    try {
      for (;;) {
        const stopping = this.stopping;
        const changes = await this.readPage();
        if (changes.length === 0 && stopping) return;
        if (changes.length === 0) await sleep(10);
      }
    } catch (error) {
      this.failures.push(`follower: ${error.code} ${error.message?.slice(0, 300)}\n${error.stack}`);
    }
  }

  // Each page by an iterator of its own, from the token of the page before.
  async readPage() {
    const options = { changeFeedStartFrom: this.start, maxItemCount: 50 };
    const page = await this.items.getChangeFeedIterator(options).readNext();
    this.start = ChangeFeedStartFrom.Continuation(page.continuationToken);
    const changes = page.statusCode === 304 ? [] : page.result;
    for (const change of changes) this.take(change);
    return changes;
  }

  take(change) {
    const name = `${change.pk}/${change.id}`;
    const version = `${name} ${change._etag}`;
    if (this.seen.has(version)) this.failures.push(`${version} is told twice`);
    // A batch is one commit: its items have the same position.
    const before = this.lsn.get(change.pk) ?? 0;
    if (change._lsn < before) this.failures.push(`${change.pk}: a change at ${change._lsn} after one at ${before}`);
    this.seen.add(version);
    this.lsn.set(change.pk, change._lsn);
    this.latest.set(name, change);
  }

  // Deletes are not told: items may be known that are gone, but none may be missing or old.
  compare(worker) {
    for (const [name, held] of worker.model) {
      const wrong = [...held].filter(([id, item]) => !same(this.latest.get(`${name}/${id}`), item)).map(([id]) => id);
      if (wrong.length) this.failures.push(`${name}: the last changes of ${wrong} are not told`);
    }
  }
}

function same(stored, expected) {
  return stored !== undefined && Object.keys(expected).every((name) => stored[name] === expected[name]);
}

const client = new CosmosClient({ endpoint, key });
await client.databases.createIfNotExists({ id: database });
await client.database(database).containers.createIfNotExists({ id: "life", partitionKey: { paths: ["/pk"] } });
console.log("begun");
const until = Date.now() + Number(seconds) * 1000;
const workers = Array.from({ length: WORKERS }, (_, number) => new Worker(number, until));
const follower = new Follower();
const followed = follower.run();
await Promise.all(workers.map((worker) => worker.run()));
follower.stopping = true;
await followed;
for (const worker of workers) follower.compare(worker);
const failures = [...workers, follower].flatMap((each) => each.failures);
for (const failure of failures.slice(0, 10)) console.log(`FAILED ${failure}`);
const items = workers.flatMap((worker) => [...worker.model.values()]).reduce((sum, held) => sum + held.size, 0);
const operations = workers.reduce((sum, worker) => sum + worker.operations, 0);
console.log(JSON.stringify({ operations, items, changes: follower.seen.size, failures: failures.length }));
process.exit(failures.length ? 1 : 0);
