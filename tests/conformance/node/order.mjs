// Rows that nothing sorts, with the official JavaScript SDK: cases of conformance.mjs.
//
// They come as their items were created: across the keys of a physical partition, inside each
// key, and where the values that sort them are equal.

import assert from "node:assert/strict";

/** The ids, as they are created: neither they nor their keys are in any other order. */
const LETTERS = "mzakqcxbtehwdnyfuljrgp";
const KEYS = 5;
/** What many small pages cost in a second; a container with that still has one partition. */
const ONE_PARTITION_MAX = 6000;

const UNSORTED = ["SELECT * FROM c", "SELECT * FROM c WHERE c.same = 1", "SELECT * FROM c WHERE c.code > 0"];
const TIES = "SELECT * FROM c ORDER BY c.same";

const keyOf = (letter) => `key ${(LETTERS.indexOf(letter) * 3) % KEYS}`;
const item = (letter, version = 0) => ({ id: letter, pk: keyOf(letter), same: 1, code: letter.charCodeAt(0), version });
const read = (rows = []) => rows.map((row) => row.id).join("");
const among = (letters, sequence) => [...letters].filter((letter) => sequence.includes(letter)).join("");
const ofKey = (letters, key) => [...letters].filter((letter) => keyOf(letter) === key).join("");

async function create(container, letters) {
  for (const letter of letters) await container.items.create(item(letter));
  return letters;
}

/** Each page by an iterator of its own, which is given the token of the page before. */
async function resumed(start) {
  let [letters, continuationToken] = ["", undefined];
  do {
    const page = await start({ maxItemCount: 2, continuationToken }).fetchNext();
    letters += read(page.resources);
    ({ continuationToken } = page);
  } while (continuationToken);
  return letters;
}

/** The letters that each way of reading gives, in one page and in pages of two. */
async function* everyWay({ items }, partitionKey) {
  const whole = async (iterator) => read((await iterator.fetchAll()).resources);
  for (const text of [...UNSORTED, TIES]) {
    yield [text, await whole(items.query(text, { partitionKey }))];
    yield [`${text} in pages`, await whole(items.query(text, { partitionKey, maxItemCount: 2 }))];
    // Without query control this SDK gives no token of a query that it merges.
    const enableQueryControl = true;
    yield [`${text}, resumed`, await resumed((page) => items.query(text, { partitionKey, enableQueryControl, ...page }))];
  }
  if (partitionKey === undefined) {
    yield ["merged", await whole(items.query(TIES, { forceQueryPlan: true, maxDegreeOfParallelism: 10 }))];
  }
  yield ["all items", await whole(items.readAll({ partitionKey }))];
  yield ["all items, resumed", await resumed((page) => items.readAll({ partitionKey, ...page }))];
}

/** Each way of reading gives every item once, and those of each sequence in its order. */
async function check(container, sequences, key) {
  for await (const [way, letters] of everyWay(container, key)) {
    assert.deepEqual(sequences.map((each) => among(letters, each)), sequences, `${way}: ${letters}`);
    assert.deepEqual([...letters].sort(), [...new Set(sequences.join(""))].sort(), way);
  }
}

/** The letters of each range, as they were created. Queries of this SDK name no range; reads tell theirs. */
async function byRange(container, letters) {
  const ranges = {};
  for (const letter of letters) {
    const { headers } = await container.item(letter, keyOf(letter)).read();
    const range = headers["x-ms-documentdb-partitionkeyrangeid"];
    ranges[range] = (ranges[range] ?? "") + letter;
  }
  assert.deepEqual((await container.getFeedRanges()).length, Object.keys(ranges).length);
  return Object.values(ranges);
}

export function orderCases({ connect, endpoint, key, database, container: coll }) {
  const cases = {};

  async function newContainer(id) {
    const definition = { id, partitionKey: { paths: ["/pk"], version: 2 }, throughput: ONE_PARTITION_MAX };
    return (await database.containers.create(definition)).container;
  }

  cases.rowsComeAsTheirItemsWereCreated = async () => {
    const container = await newContainer("created");
    let letters = await create(container, LETTERS.slice(0, 14));
    await check(container, [letters]);
    for (const each of ["key 0", "key 3"]) await check(container, [ofKey(letters, each)], each);
    // Whatever changes an item leaves it where it is.
    await container.item("a", keyOf("a")).replace(item("a", 1));
    await container.items.upsert(item("z", 1));
    await container.item("x", keyOf("x")).patch([{ op: "set", path: "/version", value: 1 }]);
    await check(container, [letters]);
    // An item that is deleted and created again is a new one.
    await container.item("k", keyOf("k")).delete();
    letters = letters.replace("k", "") + (await create(container, "k"));
    await check(container, [letters]);
    await check(container, [ofKey(letters, keyOf("k"))], keyOf("k"));
  };

  /** Changes a layout as an operator would, and gives back the ids of the new ranges. */
  async function operate(verb, body) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fetch(`${endpoint}_orrery/${verb}`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200);
    return (await answer.json()).new.map((each) => each.id);
  }

  /** In a query that it merges, this SDK never stops asking a range that is gone: each layout gets a client of its own. */
  const seenAfresh = (container) => connect().database(database.id).container(container.id);

  cases.rowsKeepTheirOrderThroughSplitsAndMerges = async () => {
    let container = await newContainer("moved");
    let letters = await create(container, LETTERS.slice(0, 10));
    const children = await operate("split", { container: container.url, range: "0" });
    container = seenAfresh(container);
    await check(container, await byRange(container, letters));
    letters += await create(container, LETTERS.slice(10, 16));
    const [left, right] = await byRange(container, letters);
    assert.ok(left.length > 3 && right.length > 3, `${left} and ${right}`);
    await check(container, [left, right]);
    assert.equal((await operate("merge", { container: container.url, ranges: children })).length, 1);
    container = seenAfresh(container);
    const later = await create(container, LETTERS.slice(16, 20));
    await check(container, [left + later, right + later]);
    await coll.items.upsert({ id: "order", deviceId: "order", sequences: [left + later, right + later] });
  };

  async function verifyOrderAfterRestart() {
    const created = database.container("created");
    const later = await create(created, LETTERS.slice(14, 16));
    await check(created, [`${LETTERS.slice(0, 14).replace("k", "")}k${later}`]);
    const moved = database.container("moved");
    const { sequences } = (await coll.item("order", "order").read()).resource;
    const last = await create(moved, LETTERS.slice(20));
    await check(moved, sequences.map((each) => each + last));
  }

  return { cases, verifyOrderAfterRestart };
}
