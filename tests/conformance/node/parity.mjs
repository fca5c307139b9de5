// What a program notices only when it moves to the service or from it: cases of conformance.mjs.

import assert from "node:assert/strict";

/** With ties, as this SDK can sort only one type across partitions. */
const sortValue = (number) => Math.floor(number / 4);

const inOrder = (numbers) => numbers.toSorted((a, b) => a - b);

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
      // Without query control this SDK gives no token of a query that it merges.
      const page = await items.query(query, { maxItemCount, continuationToken, enableQueryControl: true }).fetchNext();
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
    for (const direction of ["ASC", "DESC"]) {
      for (const size of [1, 5, 50]) {
        const rows = [];
        for await (const page of resumed(sorted.items, `SELECT c.id, c.n FROM c ORDER BY c.n ${direction}`, size)) {
          rows.push(...page);
        }
        const [values, title] = [rows.map((row) => row.n), `${direction}, pages of ${size}`];
        assert.deepEqual(values, direction === "ASC" ? inOrder(values) : inOrder(values).reverse(), title);
        assert.deepEqual(inOrder(rows.map((row) => Number(row.id))), [...Array(72).keys()], title);
      }
    }
  };

  /** What was there all the time comes once, whatever comes and goes between pages. */
  cases.rowsInOrderGoOnWhileOthersComeAndGo = async () => {
    const sorted = database.container("sorted");
    const rows = [];
    let page = 0;
    for await (const part of resumed(sorted.items, "SELECT c.id, c.n FROM c ORDER BY c.n", 7)) {
      rows.push(...part);
      await sorted.items.create({ id: `new ${page}`, pk: `key ${page % 9}`, n: sortValue(page) });
      if (page > 0) await sorted.item(`new ${page - 1}`, `key ${(page - 1) % 9}`).delete();
      page += 1;
    }
    const stayed = rows.filter((row) => !row.id.startsWith("new"));
    assert.deepEqual(inOrder(stayed.map((row) => Number(row.id))), [...Array(72).keys()]);
    assert.deepEqual(stayed.map((row) => row.n), inOrder(stayed.map((row) => row.n)));
  };

  /** Under one key, where the server sorts. */
  cases.rowsWithoutASortValueComeFirst = async () => {
    const sorted = database.container("sorted");
    for (let number = 0; number < 8; number++) {
      await sorted.items.create({ id: `${number}`, pk: "mixed", n: [undefined, null, true, number, `text ${number}`][number % 5] });
    }
    const query = "SELECT VALUE c.n ?? 'none' FROM c ORDER BY c.n";
    const { resources } = await sorted.items.query(query, { partitionKey: "mixed", maxItemCount: 2 }).fetchAll();
    assert.deepEqual(resources, ["none", "none", null, null, true, true, 3, "text 4"]);
  };

  return cases;
}
