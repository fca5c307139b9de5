// What a program notices only when it moves to the service or from it: cases of conformance.mjs.

import assert from "node:assert/strict";

/** Types in the order of the language. This SDK cannot sort null. */
const RANKS = ["undefined", "boolean", "number", "string"];

function compare(a, b) {
  const byType = RANKS.indexOf(typeof a) - RANKS.indexOf(typeof b);
  return byType || (a === b ? 0 : a < b ? -1 : 1);
}

/** Every type there is to sort, with ties in all of them. */
function sortValue(number) {
  const values = [undefined, number % 8 === 1, Math.floor(number / 8), `text ${Math.floor(number / 16)}`];
  return values[number % values.length];
}

/** What many small pages cost in a second; a container with that still has one partition. */
const ONE_PARTITION_MAX = 6000;

export function parityCases({ database, container, throughput }) {
  const cases = {};

  cases.numbersHaveOneForm = async () => {
    const written = { whole: 5.0, large: 12345678901234567890, tiny: 1e-8, part: 0.1, zero: -0 };
    await container.items.create({ id: "numbers", deviceId: 7, ...written });
    const { resource } = await container.item("numbers", 7).read();
    assert.deepEqual({ ...written, zero: 0 }, Object.fromEntries(Object.keys(written).map((name) => [name, resource[name]])));
    const query = {
      query: "SELECT VALUE c.large FROM c WHERE c.large = @large AND c.whole = 50e-1",
      parameters: [{ name: "@large", value: 12345678901234567890 }],
    };
    assert.deepEqual((await container.items.query(query, { partitionKey: 7 }).fetchAll()).resources, [written.large]);
  };

  cases.idsWithQuestionMarks = async () => {
    for (const id of ["a?b", "a?b=1&c=d", "what is it? this"]) {
      await container.items.create({ id, deviceId: "odd" });
      assert.equal((await container.item(id, "odd").read()).resource.id, id);
      const { resource } = await container.item(id, "odd").patch([{ op: "set", path: "/n", value: 1 }]);
      assert.equal(resource.n, 1);
      await container.item(id, "odd").delete();
      assert.equal((await container.item(id, "odd").read()).statusCode, 404);
    }
  };

  cases.aParameterThatNobodyGaveIsUndefined = async () => {
    const query = "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(@type) OR c.metricType = @type";
    const rows = async (parameters) =>
      (await database.container("readings").items.query({ query, parameters }).fetchAll()).resources.length;
    assert.deepEqual([await rows([]), await rows([{ name: "@type", value: "Humidity" }])], [120, 60]);
  };

  cases.noBodiesOfABatchWhenNotWanted = async () => {
    const write = [{ operationType: "Upsert", resourceBody: { id: "quiet", deviceId: "batch" } }];
    const bodies = async (options) => {
      const { result } = await container.items.batch([...write, { operationType: "Read", id: "quiet" }], "batch", options);
      return result.map((each) => each.resourceBody !== undefined);
    };
    assert.deepEqual(await bodies({}), [true, true]);
    assert.deepEqual(await bodies({ contentResponseOnWriteEnabled: false }), [false, true]);
  };

  /** Pages of a query, each by a new iterator that is given the token of the page before. */
  async function* resumed(items, query, maxItemCount) {
    let continuationToken;
    do {
      const page = await items.query(query, { maxItemCount, continuationToken }).fetchNext();
      continuationToken = page.continuationToken;
      yield page.resources ?? [];
    } while (continuationToken);
  }

  cases.rowsInOrderGoOnFromTheirToken = async () => {
    const { container: sorted } = await database.containers.create({
      id: "sorted", partitionKey: { paths: ["/pk"] }, throughput: Math.max(throughput, ONE_PARTITION_MAX),
    });
    const item = (number) => ({ id: `${number}`, pk: `key ${number % 9}`, n: sortValue(number) });
    for (let number = 0; number < 72; number++) await sorted.items.create(item(number));
    for (const [direction, sign] of [["ASC", 1], ["DESC", -1]]) {
      for (const size of [1, 5, 50]) {
        const rows = [];
        for await (const page of resumed(sorted.items, `SELECT c.id, c.n FROM c ORDER BY c.n ${direction}`, size)) {
          rows.push(...page);
        }
        const values = rows.map((row) => row.n);
        assert.deepEqual(values, values.toSorted((a, b) => sign * compare(a, b)), `${direction}, pages of ${size}`);
        assert.deepEqual(rows.map((row) => Number(row.id)).sort((a, b) => a - b), [...Array(72).keys()], `${direction}, pages of ${size}`);
      }
    }
  };

  /** What was there all the time comes once, whatever comes and goes between pages. */
  cases.rowsInOrderGoOnWhileOthersComeAndGo = async () => {
    const { items } = database.container("sorted");
    const rows = [];
    let page = 0;
    for await (const part of resumed(items, "SELECT c.id, c.n FROM c ORDER BY c.n", 7)) {
      rows.push(...part);
      await items.create({ id: `new ${page}`, pk: `key ${page % 9}`, n: sortValue(page) });
      if (page > 0) await database.container("sorted").item(`new ${page - 1}`, `key ${(page - 1) % 9}`).delete();
      page += 1;
    }
    const stayed = rows.filter((row) => !row.id.startsWith("new"));
    assert.deepEqual(stayed.map((row) => Number(row.id)).sort((a, b) => a - b), [...Array(72).keys()]);
    const values = stayed.map((row) => row.n);
    assert.deepEqual(values, values.toSorted(compare));
  };

  return cases;
}
