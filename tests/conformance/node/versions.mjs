// All versions and deletes with the official JavaScript SDK: cases of conformance.mjs.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom } from "@azure/cosmos";

const KEYS = 7;
const PATIENCE_MS = 60_000;

/** Writes items, and knows every operation on each key since `take` was last called. */
class Writer {
  constructor(container) {
    this.container = container;
    this.items = new Map();
    this.story = {};
  }

  tell(operation, number, version) {
    (this.story[`key ${number % KEYS}`] ??= []).push([operation, `${number}`, version]);
  }

  async put(number, version) {
    await this.container.items.upsert({ id: `${number}`, pk: `key ${number % KEYS}`, version });
    this.tell(this.items.has(number) ? "replace" : "create", number, version);
    this.items.set(number, version);
  }

  async delete(number) {
    await this.container.item(`${number}`, `key ${number % KEYS}`).delete();
    this.tell("delete", number, this.items.get(number));
    this.items.delete(number);
  }

  async writeSome(first) {
    const numbers = [...Array(3 * KEYS).keys()].map((at) => first + at);
    for (const number of numbers) await this.put(number, 0);
    for (const number of numbers.filter((each) => each % 4 === 0)) await this.put(number, 1);
    for (const number of numbers.filter((each) => each % 3 === 0)) await this.delete(number);
  }

  take() {
    const story = this.story;
    this.story = {};
    return story;
  }
}

/** The operations on each key, in their order. */
function told(changes) {
  const [story, last] = [{}, {}];
  for (const { current, previous, metadata } of changes) {
    const { operationType, lsn, crts, previousImageLSN } = metadata;
    const isDelete = operationType === "delete";
    const item = isDelete ? previous : current;
    if (isDelete) {
      assert.deepEqual(current, {});
      assert.equal(metadata.timeToLiveExpired, false);
      assert.deepEqual([metadata.id, metadata.partitionKey], [item.id, { pk: item.pk }]);
    }
    assert.ok(operationType === "create" || previousImageLSN < lsn);
    assert.ok(item._etag && item._ts <= crts && lsn > (last[item.pk] ?? 0));
    last[item.pk] = lsn;
    (story[item.pk] ??= []).push([operationType, item.id, item.version]);
  }
  return story;
}

async function drain(iterator) {
  const changes = [];
  for (;;) {
    const { result, statusCode, continuationToken } = await iterator.readNext();
    if (statusCode === 304) return { changes, position: continuationToken };
    assert.equal(statusCode, 200);
    changes.push(...result);
  }
}

function feed(container, changeFeedStartFrom, maxItemCount) {
  const options = { changeFeedStartFrom, maxItemCount, changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
  return drain(container.items.getChangeFeedIterator(options));
}

const feedAfter = (container, position, size) => feed(container, ChangeFeedStartFrom.Continuation(position), size);

export function versionCases({ database, container: coll, partitions, throughput }) {
  const cases = {};

  async function newContainer(id, more = {}) {
    const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10));
    const definition = { id, partitionKey: { paths: ["/pk"], version: 2 }, throughput, changeFeedPolicy, ...more };
    const { container, resource } = await database.containers.create(definition);
    assert.deepEqual(resource.changeFeedPolicy, { retentionDuration: 10 });
    return container;
  }

  cases.allVersionsFromNowOn = async () => {
    const container = await newContainer("versions");
    const writer = new Writer(container);
    await writer.writeSome(0);
    writer.take();
    let { changes, position } = await feed(container, ChangeFeedStartFrom.Now());
    assert.deepEqual(changes, []);
    for (const first of [20, 0]) {
      await writer.writeSome(first);
      ({ changes, position } = await feedAfter(container, position, 3));
      assert.deepEqual(told(changes), writer.take());
    }
    assert.deepEqual((await feedAfter(container, position)).changes, []);
    await coll.items.upsert({ id: "versions", deviceId: "followed", position });
  };

  cases.allVersionsOfOneKeyAndOfFeedRanges = async () => {
    const container = await newContainer("partsOfVersions");
    const keys = [...Array(KEYS).keys()].map((at) => `key ${at}`);
    const positions = {};
    for (const key of keys) ({ position: positions[key] } = await feed(container, ChangeFeedStartFrom.Now(key)));
    const parts = [];
    for (const range of await container.getFeedRanges()) {
      parts.push((await feed(container, ChangeFeedStartFrom.Now(range))).position);
    }
    const writer = new Writer(container);
    await writer.writeSome(0);
    const expected = writer.take();
    for (const key of keys) {
      const { changes, position } = await feedAfter(container, positions[key], 2);
      assert.deepEqual(told(changes), { [key]: expected[key] });
      assert.deepEqual((await feedAfter(container, position)).changes, []);
    }
    const all = [];
    for (const position of parts) all.push(...(await feedAfter(container, position)).changes);
    assert.deepEqual(told(all), expected);
  };

  cases.expiryIsToldAsSuch = async () => {
    const container = await newContainer("expiringVersions", { defaultTtl: -1 });
    let { position } = await feed(container, ChangeFeedStartFrom.Now());
    await container.items.create({ id: "short", pk: "a", ttl: 1 });
    const changes = [];
    for (const deadline = Date.now() + PATIENCE_MS; changes.length < 2; await sleep(200)) {
      assert.ok(Date.now() < deadline, "not expired");
      const more = await feedAfter(container, position);
      changes.push(...more.changes);
      position = more.position;
    }
    const { operationType, timeToLiveExpired, id, partitionKey } = changes[1].metadata;
    assert.deepEqual([operationType, timeToLiveExpired, id, partitionKey], ["delete", true, "short", { pk: "a" }]);
  };

  // More throughput than the partitions can have makes the server split them all.
  cases.allVersionsGoOnThroughSplits = async () => {
    const container = await newContainer("splittingVersions");
    const writer = new Writer(container);
    let { position } = await feed(container, ChangeFeedStartFrom.Now());
    const deadline = Date.now() + PATIENCE_MS;
    for (let number = 0, after = 0; after < 2 * KEYS; number++) {
      assert.ok(Date.now() < deadline, "no split");
      if (number === KEYS) {
        const { offer, resource } = await container.readOffer();
        resource.content.offerThroughput = 10000 * partitions + 1000;
        await offer.replace(resource);
      }
      await writer.put(number % (2 * KEYS), number);
      if (number % 3 === 2) await writer.delete(number % (2 * KEYS));
      const more = await feedAfter(container, position);
      assert.deepEqual(told(more.changes), writer.take());
      position = more.position;
      const { resources } = await container.readPartitionKeyRanges().fetchAll();
      after += resources.length > partitions;
    }
    assert.deepEqual((await feedAfter(container, position)).changes, []);
  };

  async function verifyAllVersionsAfterRestart() {
    const container = database.container("versions");
    const { resource: kept } = await coll.item("versions", "followed").read();
    let { changes, position } = await feedAfter(container, kept.position);
    assert.deepEqual(changes, []);
    const writer = new Writer(container);
    await writer.writeSome(1000);
    ({ changes, position } = await feedAfter(container, position));
    assert.deepEqual(told(changes), writer.take());
    assert.deepEqual((await feedAfter(container, position)).changes, []);
  }

  return { cases, verifyAllVersionsAfterRestart };
}
