// The change feed with the official JavaScript SDK: cases of conformance.mjs.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedStartFrom } from "@azure/cosmos";

const KEYS = 7;
// A layout changes in well under a second; a machine may be busy with other things.
const PATIENCE_MS = 60_000;

/** Writes items, and knows what a feed must tell that begins where `take` was last called. */
class Writer {
  constructor(container) {
    this.container = container;
    this.expected = new Map();
  }

  versions(key) {
    if (!this.expected.has(key)) this.expected.set(key, new Map());
    return this.expected.get(key);
  }

  async put(number, version) {
    const item = { id: `${number}`, pk: `key ${number % KEYS}`, version };
    const { resource } = await this.container.items.upsert(item);
    this.versions(item.pk).delete(item.id);
    this.versions(item.pk).set(item.id, version);
    return resource;
  }

  async delete(number) {
    await this.container.item(`${number}`, `key ${number % KEYS}`).delete();
    this.versions(`key ${number % KEYS}`).delete(`${number}`);
  }

  /** Creates items, changes some of them once or twice and deletes some. */
  async writeSome(first) {
    const numbers = [...Array(4 * KEYS).keys()];
    for (const at of numbers) await this.put(first + at, 0);
    for (const [version, every] of [[1, 3], [2, 6]]) {
      for (const at of numbers.filter((each) => each % every === 0)) await this.put(first + at, version);
    }
    for (const at of numbers.filter((each) => each % 5 === 0)) await this.delete(first + at);
  }

  take() {
    const expected = [...this.expected].filter(([, versions]) => versions.size);
    this.expected = new Map();
    return Object.fromEntries(expected.map(([key, versions]) => [key, [...versions]]));
  }
}

/** Of each key every item once, in its latest version, in the order of the writes. */
function check(changes, expected) {
  const [told, last] = [{}, {}];
  for (const { pk, id, version, _lsn } of changes) {
    (told[pk] ??= []).push([id, version]);
    assert.ok(_lsn > (last[pk] ?? 0), `_lsn ${_lsn} after ${last[pk]} of ${pk}`);
    last[pk] = _lsn;
  }
  assert.deepEqual(told, expected);
}

const sorted = (changes) => changes.toSorted((a, b) => Number(a.id) - Number(b.id));

/** All that there is now, and the position behind it. */
async function feed(container, changeFeedStartFrom, maxItemCount) {
  return drain(container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount }));
}

async function feedAfter(container, position) {
  return feed(container, ChangeFeedStartFrom.Continuation(position));
}

/** The iterator of this SDK never ends by itself: 304 says that there is nothing new. */
async function drain(iterator) {
  const changes = [];
  for (;;) {
    const { result, statusCode, continuationToken } = await iterator.readNext();
    if (statusCode === 304) return { changes, position: continuationToken };
    assert.equal(statusCode, 200);
    changes.push(...result);
  }
}

async function nothingNew(container, position) {
  assert.deepEqual((await feedAfter(container, position)).changes, []);
}

export function changeFeedCases({ database, container: coll, partitions, throughput }) {
  const cases = {};

  async function newContainer(id) {
    const definition = { id, partitionKey: { paths: ["/pk"], version: 2 }, throughput };
    return (await database.containers.create(definition)).container;
  }

  cases.changeFeedFromTheBeginning = async () => {
    const container = await newContainer("changes");
    assert.deepEqual((await feed(container, ChangeFeedStartFrom.Beginning())).changes, []);
    const writer = new Writer(container);
    await writer.writeSome(0);
    const expected = writer.take();
    for (const size of [undefined, 3, 1]) {
      const { changes } = await feed(container, ChangeFeedStartFrom.Beginning(), size);
      check(changes, expected);
    }
  };

  cases.changeFeedGoesOnFromItsContinuation = async () => {
    const container = await newContainer("continued");
    const writer = new Writer(container);
    await writer.writeSome(0);
    const changes = [];
    for (let start = ChangeFeedStartFrom.Beginning(); ;) {
      // Each page by an iterator of its own.
      const options = { changeFeedStartFrom: start, maxItemCount: 2 };
      const { result, statusCode, continuationToken } = await container.items.getChangeFeedIterator(options).readNext();
      start = ChangeFeedStartFrom.Continuation(continuationToken);
      if (statusCode === 304) break;
      assert.ok(result.length <= 2);
      changes.push(...result);
    }
    check(changes, writer.take());
    let { position } = await feed(container, ChangeFeedStartFrom.Beginning());
    for (const first of [10, 20]) {
      await writer.writeSome(first);
      const more = await feedAfter(container, position);
      check(more.changes, writer.take());
      position = more.position;
    }
    await nothingNew(container, position);
    // The delete of an item that was told before is no change in this mode.
    await writer.delete(1);
    await nothingNew(container, position);
  };

  cases.changeFeedFromNow = async () => {
    const container = await newContainer("now");
    const writer = new Writer(container);
    await writer.writeSome(0);
    writer.take();
    const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    assert.deepEqual((await drain(iterator)).changes, []);
    for (const first of [2, 40]) {
      await writer.writeSome(first);
      check((await drain(iterator)).changes, writer.take());
    }
    assert.deepEqual((await drain(iterator)).changes, []);
  };

  cases.changeFeedFromAPointInTime = async () => {
    const container = await newContainer("since");
    const writer = new Writer(container);
    await writer.writeSome(0);
    const { _ts: before } = await writer.put(0, 3);
    // Times of changes are whole seconds; two of them leave one without a change in between.
    while ((await writer.put(0, 4))._ts < before + 2) await sleep(100);
    writer.take();
    await writer.put(0, 5);
    await writer.writeSome(20);
    const start = ChangeFeedStartFrom.Time(new Date((before + 1) * 1000));
    const { changes, position } = await feed(container, start, 4);
    check(changes, writer.take());
    await nothingNew(container, position);
    await writer.writeSome(1);
    check((await feedAfter(container, position)).changes, writer.take());
  };

  cases.changeFeedOfOneKey = async () => {
    const container = database.container("continued");
    const whole = await feed(container, ChangeFeedStartFrom.Beginning());
    for (const key of [...Array(KEYS).keys()].map((at) => `key ${at}`)) {
      const { changes, position } = await feed(container, ChangeFeedStartFrom.Beginning(key), 2);
      assert.deepEqual(changes, whole.changes.filter((each) => each.pk === key));
      assert.ok(changes.length > 0);
      await nothingNew(container, position);
    }
    const { position } = await feed(container, ChangeFeedStartFrom.Now("key 3"));
    const writer = new Writer(container);
    await writer.writeSome(100);
    check((await feedAfter(container, position)).changes, { "key 3": writer.take()["key 3"] });
  };

  cases.changeFeedOfFeedRanges = async () => {
    const container = database.container("continued");
    const whole = await feed(container, ChangeFeedStartFrom.Beginning());
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, partitions);
    const told = [];
    for (const range of ranges) told.push(await feed(container, ChangeFeedStartFrom.Beginning(range), 5));
    for (const { changes } of told) {
      const positions = changes.map((each) => each._lsn);
      assert.ok(positions.every((lsn, at) => at === 0 || positions[at - 1] < lsn), "not in the order of commits");
    }
    assert.deepEqual(sorted(told.flatMap((each) => each.changes)), sorted(whole.changes));
    const writer = new Writer(container);
    await writer.writeSome(200);
    const more = [];
    for (const { position } of told) more.push(...(await feedAfter(container, position)).changes);
    check(more, writer.take());
  };

  // More throughput than the partitions can have makes the server split them all.
  cases.changeFeedGoesOnThroughSplits = async () => {
    const container = await newContainer("splitting");
    const writer = new Writer(container);
    const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    let { position } = await drain(iterator);
    const deadline = Date.now() + PATIENCE_MS;
    for (let number = 0, after = 0; after < 2 * KEYS; number++) {
      assert.ok(Date.now() < deadline, "no split");
      if (number === KEYS) await askFor(container, 10000 * partitions + 1000);
      await writer.put(number % (2 * KEYS), number);
      const expected = writer.take();
      check((await drain(iterator)).changes, expected);
      const more = await feedAfter(container, position);
      check(more.changes, expected);
      position = more.position;
      const { resources } = await container.readPartitionKeyRanges().fetchAll();
      after += resources.length > partitions;
    }
    await nothingNew(container, position);
  };

  async function askFor(container, offerThroughput) {
    const { offer, resource } = await container.readOffer();
    resource.content.offerThroughput = offerThroughput;
    await offer.replace(resource);
  }

  cases.changeFeedPositionIsKept = async () => {
    const container = await newContainer("followed");
    const writer = new Writer(container);
    await writer.writeSome(0);
    const { position } = await feed(container, ChangeFeedStartFrom.Beginning());
    for (const number of [3, 1, 2]) await writer.put(number, 7);
    await coll.items.upsert({ id: "position", deviceId: "followed", position });
  };

  async function verifyChangeFeedAfterRestart() {
    const container = database.container("followed");
    const { resource: kept } = await coll.item("position", "followed").read();
    let { changes, position } = await feedAfter(container, kept.position);
    check(changes, Object.fromEntries([1, 2, 3].map((number) => [`key ${number}`, [[`${number}`, 7]]])));
    const writer = new Writer(container);
    await writer.writeSome(30);
    ({ changes, position } = await feedAfter(container, position));
    check(changes, writer.take());
    await nothingNew(container, position);
    const { resources: all } = await container.items.readAll().fetchAll();
    const whole = await feed(container, ChangeFeedStartFrom.Beginning());
    assert.deepEqual(sorted(whole.changes).map((each) => each.id), sorted(all).map((each) => each.id));
  }

  return { cases, verifyChangeFeedAfterRestart };
}
