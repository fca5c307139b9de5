// The official JavaScript SDK, unmodified, against a running Orrery.
//
// Usage: node conformance.mjs ENDPOINT KEY PARTITIONS [write|verify]
//
// `write` runs everything and leaves some items behind; `verify` runs after a
// restart and expects them. Each case prints `ok NAME` or `FAILED NAME: why`,
// and the last line counts them. Cases that begin with the id of a row prove that
// row of docs/partitioning. Over https Node trusts the certificate in the
// file that the variable NODE_EXTRA_CA_CERTS names.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CosmosClient } from "@azure/cosmos";
import { bearerCases } from "./bearer.mjs";
import { changeFeedCases } from "./changes.mjs";
import { Gauge } from "./gauge.mjs";
import { orderCases } from "./order.mjs";
import { parityCases } from "./parity.mjs";
import { versionCases } from "./versions.mjs";

const [endpoint, key, count, mode = "write"] = process.argv.slice(2);
const partitions = Number(count);
const throughput = partitions === 1 ? 400 : 6000 * partitions;
const options = { endpoint, key, connectionPolicy: { enableBackgroundEndpointRefreshing: false } };
const connect = () => new CosmosClient(options);
const client = connect();

const name = `js${partitions}`;
const database = client.database(name);
const container = database.container("coll");
const cases = {};

async function refused(status, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.code, status, `${error.code} instead of ${status}: ${error.message}`);
    return error;
  }
  assert.fail(`not refused with ${status}`);
}

/** Reads answer 404 without throwing in this SDK. */
async function missing(item) {
  assert.equal((await item.read()).statusCode, 404);
}

const reading = { id: "XMS-001-FE24C", deviceId: "XMS-0001", metricType: "Temperature", metricValue: 105, unit: "Fahrenheit" };

cases.sample1CreateDatabase = async () => {
  const { resource } = await client.databases.create({ id: name });
  assert.equal(resource.id, name);
  await refused(409, client.databases.create({ id: name }));
};

cases.sample2CreateContainerWithKeyAndThroughput = async () => {
  const { resource } = await database.containers.create({
    id: "coll", partitionKey: { paths: ["/deviceId"] }, throughput,
  });
  assert.deepEqual(resource.partitionKey.paths, ["/deviceId"]);
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, partitions);
};

cases.sample3CreateItem = async () => {
  const { resource, statusCode } = await container.items.create(reading);
  assert.equal(statusCode, 201);
  assert.ok(resource._rid && resource._etag && resource._ts);
  await refused(409, container.items.create(reading));
};

cases.sample4ReadByKeyAndId = async () => {
  const { resource } = await container.item(reading.id, "XMS-0001").read();
  assert.equal(resource.metricValue, 105);
  await missing(container.item(reading.id, "XMS-0002"));
};

cases.sample5Replace = async () => {
  const { resource } = await container.item(reading.id, "XMS-0001").replace({ ...reading, metricValue: 104 });
  assert.equal(resource.metricValue, 104);
};

cases.sample6Delete = async () => {
  await container.item(reading.id, "XMS-0001").delete();
  await missing(container.item(reading.id, "XMS-0001"));
  await refused(404, container.item(reading.id, "XMS-0001").delete());
};

// Readings of ten devices, every second one a temperature.
const readings = [...Array(120).keys()].map((at) => {
  const [device, n] = [1 + Math.floor(at / 12), at % 12];
  return {
    id: `${device}-${n}`, deviceId: `XMS-${String(device).padStart(4, "0")}`,
    metricType: n % 2 ? "Humidity" : "Temperature", metricValue: 80 + ((device * 37 + n * 11) % 50),
  };
});
const temperatures = readings.filter((each) => each.metricType === "Temperature");
const hot = temperatures.filter((each) => each.metricValue > 100);
const hotOnes = 'SELECT * FROM root WHERE root["metricType"] = "Temperature" AND root["metricValue"] > 100';
const ids = (items) => items.map((each) => each.id);

/** The rows of a query, and the partitions that were asked for them. */
async function query(text, feedOptions = {}) {
  const pages = database.container("readings").items.query(text, {
    initialHeaders: { "x-orrery-query-explain": "true" }, ...feedOptions,
  });
  const [rows, partitions] = [[], new Set()];
  while (pages.hasMoreResults()) {
    const { resources, headers } = await pages.fetchNext();
    rows.push(...(resources ?? []));
    const explained = headers?.["x-orrery-query-explain"];
    if (explained) JSON.parse(explained).partitions.forEach((each) => partitions.add(each));
  }
  return { rows, partitions };
}

cases.sample7QueryByKeyAsksOnePartition = async () => {
  await database.containers.create({ id: "readings", partitionKey: { paths: ["/deviceId"] }, throughput });
  for (const each of readings) await database.container("readings").items.create(each);
  const text = {
    query: 'SELECT * FROM root WHERE root["metricType"] = @type AND root["deviceId"] = @device',
    parameters: [{ name: "@type", value: "Temperature" }, { name: "@device", value: "XMS-0001" }],
  };
  const expected = ids(temperatures.filter((each) => each.deviceId === "XMS-0001")).sort();
  for (const feedOptions of [{}, { partitionKey: "XMS-0001" }]) {
    const { rows, partitions } = await query(text, feedOptions);
    assert.deepEqual(ids(rows).sort(), expected);
    assert.equal(partitions.size, 1);
  }
};

cases.sample8QueryAcrossPartitions = async () => {
  const { rows, partitions: asked } = await query(hotOnes);
  assert.deepEqual(ids(rows).sort(), ids(hot).sort());
  assert.equal(asked.size, partitions);
};

cases.sample9QueryInOrderInParallel = async () => {
  const text = `${hotOnes} ORDER BY root["metricValue"]`;
  const values = hot.map((each) => each.metricValue).sort((a, b) => a - b);
  const { rows: serial } = await query(text);
  assert.deepEqual(serial.map((each) => each.metricValue), values);
  const { rows: parallel } = await query(text, { maxDegreeOfParallelism: 10, bufferItems: true, maxItemCount: 7 });
  assert.deepEqual(ids(parallel), ids(serial));
  const { rows: merged } = await query(text, { maxDegreeOfParallelism: 10, forceQueryPlan: true });
  assert.deepEqual(ids(merged), ids(serial));
  const { rows: backwards } = await query(`${text} DESC`, { maxItemCount: 1 });
  assert.deepEqual(backwards.map((each) => each.metricValue), values.reverse());
  const { rows: top } = await query(text.replace("SELECT", "SELECT TOP 10"));
  assert.deepEqual(ids(top), ids(serial).slice(0, 10));
};

cases.sample10ExecuteStoredProcedure = async () => {
  const [id, ours, older] = ["SetLatestStateAcrossReadings", "XMS-001-FE24C", "XMS-001-FE24B"];
  const body = await readFile(join(process.env.ORRERY_SCRIPTS, `${id}.js`), "utf8");
  await container.scripts.storedProcedures.create({ id, body });
  for (const reading of [ours, older]) {
    await container.items.create({ id: reading, deviceId: "XMS-0001", metricType: "Temperature", isLatest: true });
  }
  const execute = async (key) => (await container.scripts.storedProcedure(id).execute(key, [ours])).resource;
  // To the letter the article names a key that no device has.
  assert.deepEqual(await execute("XMS-001"), { latest: null, outdated: 0 });
  assert.deepEqual(await execute("XMS-0001"), { latest: ours, outdated: 1 });
  for (const [reading, isLatest] of [[ours, true], [older, false]]) {
    assert.equal((await container.item(reading, "XMS-0001").read()).resource.isLatest, isLatest);
    await container.item(reading, "XMS-0001").delete();
  }
  await container.scripts.storedProcedure(id).delete();
};

const everyId = "SELECT VALUE c.id FROM c";

/** Runs a query that the client merges, and sees what of it is under way at once. */
async function watched(gauge, expected, text, feedOptions) {
  // A server that is discovered would be asked without a way through the gauge.
  const connectionPolicy = { enableEndpointDiscovery: false, enableBackgroundEndpointRefreshing: false };
  const counted = new CosmosClient({ endpoint: gauge.endpoint, key, connectionPolicy });
  const { items } = counted.database(name).container("readings");
  const run = async () => (await items.query(text, { forceQueryPlan: true, ...feedOptions }).fetchAll()).resources;
  return gauge.watch(expected, run);
}

cases.a8_no_more_requests_at_once_than_the_degree = async () => {
  const gauge = await Gauge.before(endpoint);
  // Where this SDK may decide, it asks all partitions at once.
  for (const degree of [1, 2, 3, 10, -1]) {
    const atOnce = degree < 1 ? partitions : Math.min(degree, partitions);
    const seen = await watched(gauge, atOnce, everyId, { maxDegreeOfParallelism: degree });
    assert.equal(seen.most, atOnce, `${seen.most} requests at once, degree ${degree}`);
    assert.equal(new Set(seen.asked.map((each) => each.split(" ")[0])).size, partitions);
    assert.deepEqual(seen.result.sort(), ids(readings).sort());
    const ordered = await watched(gauge, atOnce, `${everyId} ORDER BY c.id`, { maxDegreeOfParallelism: degree });
    assert.equal(ordered.most, atOnce, `${ordered.most} requests at once, in order, degree ${degree}`);
    assert.deepEqual(ordered.result, ids(readings).sort());
  }
};

cases.a9_the_same_rows_whatever_is_buffered = async () => {
  const gauge = await Gauge.before(endpoint);
  for (const [bufferItems, maxItemCount] of [[false, 20], [true, 20], [true, 1000]]) {
    const feedOptions = { bufferItems, maxItemCount, maxDegreeOfParallelism: 2 };
    const seen = await watched(gauge, 1, everyId, feedOptions);
    assert.deepEqual(seen.result.sort(), ids(readings).sort(), JSON.stringify(feedOptions));
    const ordered = await watched(gauge, 1, `${everyId} ORDER BY c.id`, feedOptions);
    assert.deepEqual(ordered.result, ids(readings).sort(), JSON.stringify(feedOptions));
  }
};

cases.queriesMergedByTheClientAgree = async () => {
  const texts = [
    "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE AVG(c.metricValue) FROM c", "SELECT VALUE MAX(c.metricValue) FROM c",
    "SELECT DISTINCT VALUE c.metricValue FROM c ORDER BY c.metricValue",
    "SELECT c.id FROM c ORDER BY c.id OFFSET 30 LIMIT 20", "SELECT TOP 7 c.id FROM c ORDER BY c.id DESC",
    "SELECT COUNT(1) AS many, SUM(c.metricValue) AS total FROM c",
    "SELECT VALUE c.id FROM c WHERE c.deviceId IN ('XMS-0002', 'XMS-0005') ORDER BY c.id",
  ];
  for (const text of texts) {
    const { rows: raw } = await query(text);
    const { rows: merged } = await query(text, { forceQueryPlan: true });
    assert.deepEqual(merged, raw, text);
  }
  const groups = "SELECT c.metricType, COUNT(1) AS many FROM c GROUP BY c.metricType";
  const sorted = (rows) => rows.map((each) => JSON.stringify(each)).sort();
  const { rows: raw } = await query(groups);
  const { rows: merged } = await query(groups, { forceQueryPlan: true });
  assert.deepEqual(sorted(merged), sorted(raw));
  assert.equal(raw.length, 2);
};

cases.pagesOfAQueryGoOnFromTheirToken = async () => {
  const items = database.container("readings").items;
  const whole = ids((await items.query(hotOnes).fetchAll()).resources);
  const first = await items.query(hotOnes, { maxItemCount: 7 }).fetchNext();
  assert.ok(first.continuationToken.length <= 1024);
  const rest = await items.query(hotOnes, { continuationToken: first.continuationToken }).fetchAll();
  assert.deepEqual([...ids(first.resources), ...ids(rest.resources)], whole);
};

cases.wrongQueriesAreRefused = async () => {
  const error = await refused(400, database.container("readings").items.query("SELECT * FORM c").fetchAll());
  assert.match(error.message, /SC1001/);
};

cases.everyTypeOfKey = async () => {
  for (const value of ["text", "", 1, 1.5, -3, true, false, null, "ünï 🚀"]) {
    const { resource } = await container.items.create({ deviceId: value });
    assert.equal((await container.item(resource.id, value).read()).resource.deviceId, value);
  }
};

cases.oddIds = async () => {
  for (const id of ["with space", "plus+", "per%cent", "quote'\"", "ünï", "(1)"]) {
    await container.items.upsert({ id, deviceId: "odd" });
    assert.equal((await container.item(id, "odd").read()).resource.id, id);
    await container.item(id, "odd").delete();
  }
};

cases.etagsGuardWrites = async () => {
  const { resource } = await container.items.create({ id: "guarded", deviceId: "e", n: 1 });
  const condition = { accessCondition: { type: "IfMatch", condition: resource._etag } };
  await container.item("guarded", "e").replace({ ...resource, n: 2 }, condition);
  await refused(412, container.item("guarded", "e").replace({ ...resource, n: 3 }, condition));
  assert.equal((await container.item("guarded", "e").read()).resource.n, 2);
};

cases.patch = async () => {
  await container.items.create({ id: "p", deviceId: "p", n: 1, list: [1, 3] });
  const { resource } = await container.item("p", "p").patch([
    { op: "add", path: "/list/1", value: 2 }, { op: "incr", path: "/n", value: 2 }, { op: "set", path: "/x", value: null },
  ]);
  assert.deepEqual([resource.list, resource.n, resource.x], [[1, 2, 3], 3, null]);
  const conditional = { condition: "from c where c.n = 1", operations: [{ op: "set", path: "/n", value: 0 }] };
  await refused(412, container.item("p", "p").patch(conditional));
  await refused(400, container.item("p", "p").patch([{ op: "set", path: "/deviceId", value: "q" }]));
};

cases.batchIsAllOrNothing = async () => {
  const create = (id) => ({ operationType: "Create", resourceBody: { id, deviceId: "batch" } });
  const done = await container.items.batch([create("b1"), create("b2"), { operationType: "Delete", id: "b2" }], "batch");
  assert.deepEqual(done.result.map((each) => each.statusCode), [201, 201, 204]);
  const failed = await container.items.batch([create("b3"), create("b1")], "batch");
  assert.deepEqual(failed.result.map((each) => each.statusCode), [424, 409]);
  await missing(container.item("b3", "batch"));
};

cases.bulk = async () => {
  const operations = [...Array(50).keys()].map((n) => ({
    operationType: "Create", partitionKey: `bulk ${n % 11}`, resourceBody: { id: `bulk${n}`, deviceId: `bulk ${n % 11}` },
  }));
  const results = await container.items.executeBulkOperations(operations);
  assert.ok(results.every((each) => each.response?.statusCode === 201), JSON.stringify(results.find((each) => each.response?.statusCode !== 201)));
  assert.equal((await container.item("bulk13", "bulk 2").read()).resource.id, "bulk13");
};

cases.tooLargeIsRefused = async () => {
  await refused(413, container.items.create({ id: "large", deviceId: "x", text: "x".repeat(2 << 20) }));
};

cases.hierarchicalKeys = async () => {
  const { container: tree } = await database.containers.create({
    id: "tree", partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 }, throughput,
  });
  await tree.items.create({ id: "1", tenant: "t", user: "u" });
  assert.equal((await tree.item("1", ["t", "u"]).read()).resource.user, "u");
};

cases.throughputIsReadAndReplaced = async () => {
  const { offer, resource } = await container.readOffer();
  assert.equal(resource.content.offerThroughput, throughput);
  resource.content.offerThroughput = throughput + 100;
  await offer.replace(resource);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, throughput + 100);
};

cases.usersPermissionsAndScripts = async () => {
  const { user } = await database.users.create({ id: "someone" });
  const { resource } = await user.permissions.create({ id: "reads", permissionMode: "read", resource: container.url });
  assert.equal(resource.permissionMode, "read");
  await user.delete();
  await container.scripts.storedProcedures.create({ id: "sp", body: "function () {}" });
  assert.equal((await container.scripts.storedProcedure("sp").read()).resource.body, "function () {}");
  await container.scripts.storedProcedure("sp").delete();
};

const changeFeed = changeFeedCases({ database, container, partitions, throughput });
const versions = versionCases({ database, container, partitions, throughput });
const order = orderCases({ connect, endpoint, key, database, container });
if (endpoint.startsWith("https")) Object.assign(cases, bearerCases({ endpoint, key, database }));
const parity = parityCases({ database, container, throughput });
Object.assign(cases, changeFeed.cases, versions.cases, parity, order.cases);

cases.whatWasWrittenStays = async () => {
  const { container: kept } = await database.containers.create({ id: "kept", partitionKey: { paths: ["/pk"] }, throughput });
  for (let n = 0; n < 50; n++) await kept.items.create({ id: `${n}`, pk: `${n % 7}`, n });
};

async function verifyAfterRestart() {
  const kept = database.container("kept");
  for (let n = 0; n < 50; n++) assert.equal((await kept.item(`${n}`, `${n % 7}`).read()).resource.n, n);
}

const { verifyChangeFeedAfterRestart } = changeFeed;
const { verifyAllVersionsAfterRestart } = versions;
const { verifyOrderAfterRestart } = order;
const verifying = {
  verifyAfterRestart,
  verifyChangeFeedAfterRestart,
  verifyAllVersionsAfterRestart,
  verifyOrderAfterRestart,
};
const chosen = mode === "verify" ? verifying : cases;
let failures = 0;
for (const [title, run] of Object.entries(chosen)) {
  try {
    await run();
    console.log(`ok ${title}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED ${title}: ${String(error.message).slice(0, 400)}`);
  }
}
console.log(`${Object.keys(chosen).length - failures} passed, ${failures} failed`);
process.exit(failures ? 1 : 0);
