// Tokens of an identity provider, with the official JavaScript SDK: cases of conformance.mjs.
//
// The SDK asks any object with a getToken for its tokens. Two are here: one whose tokens are signed by
// the provider in the folder ORRERY_PROVIDER, and one that makes the unsigned tokens of the SDK's own tests, with the
// account key in them. The SDK sends tokens over https only.

import assert from "node:assert/strict";
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CosmosClient } from "@azure/cosmos";

const keyFile = join(process.env.ORRERY_PROVIDER, "private.json");
const [reader, contributor] = [1, 2].map((number) => `00000000-0000-0000-0000-00000000000${number}`);
const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Somebody whom the provider vouches for. */
class Bearer {
  constructor(name, more = {}) {
    const jwk = JSON.parse(readFileSync(keyFile, "utf8"));
    this.key = createPrivateKey({ key: jwk, format: "jwk" });
    this.claims = { iss: "https://provider.test/", aud: "https://orrery.test", oid: name, ...more };
  }

  async getToken() {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iat: now, nbf: now, exp: now + 3600, ...this.claims };
    const text = `${encode({ typ: "JWT", alg: "RS256", kid: "tests" })}.${encode(claims)}`;
    const signature = sign("sha256", Buffer.from(text), this.key).toString("base64url");
    return { token: `${text}.${signature}`, expiresOnTimestamp: (now + 3600) * 1000 };
  }
}

/** As the SDK's own tests do it. */
class KeyBearer {
  constructor(key) {
    this.key = key;
  }

  async getToken() {
    const now = Math.floor(Date.now() / 1000);
    const claims = { aud: "https://localhost.localhost", oid: "sdk", nbf: now, exp: now + 7200 };
    const header = { typ: "JWT", alg: "RS256", kid: "CosmosEmulatorPrimaryMaster" };
    const token = `${encode(header)}.${encode(claims)}.${encode(this.key)}`;
    return { token, expiresOnTimestamp: (now + 7200) * 1000 };
  }
}

async function refused(status, substatus, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.code, status, `${error.code} instead of ${status}: ${error.message}`);
    if (substatus) assert.equal(error.substatus, substatus);
    return error;
  }
  assert.fail(`not refused with ${status}`);
}

export function bearerCases({ endpoint, key, database }) {
  const connect = (aadCredentials) =>
    new CosmosClient({ endpoint, aadCredentials, connectionPolicy: { enableBackgroundEndpointRefreshing: false } });

  async function assign(principalId, roleDefinitionId, scope) {
    const answer = await fetch(new URL("/_orrery/roles", endpoint), {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ assign: { principalId, roleDefinitionId, scope } }),
    });
    assert.equal(answer.status, 200, await answer.text());
  }

  async function newContainer() {
    const id = `bearer${randomUUID().slice(0, 8)}`;
    await database.containers.create({ id, partitionKey: { paths: ["/pk"], version: 2 } });
    return id;
  }

  /** What a contributor does, and the SDK with it. */
  async function workOnData(client, id) {
    const container = client.database(database.id).container(id);
    await container.items.create({ id: "1", pk: "a", n: 1 });
    await container.items.upsert({ id: "2", pk: "a", n: 2 });
    await container.item("1", "a").replace({ id: "1", pk: "a", n: 3 });
    await container.item("2", "a").patch([{ op: "incr", path: "/n", value: 5 }]);
    const created = { operationType: "Create", resourceBody: { id: "3", pk: "a", n: 1 } };
    assert.equal((await container.items.batch([created], "a")).code, 200);
    const { resources } = await container.items.query("SELECT VALUE SUM(c.n) FROM c").fetchAll();
    assert.deepEqual(resources, [3 + 7 + 1]);
    await container.item("3", "a").delete();
  }

  async function aContributorWorksOnDataAndOnNothingElse() {
    const [id, who] = [await newContainer(), `writer ${randomUUID()}`];
    await assign(who, contributor, "/");
    const client = connect(new Bearer(who));
    await workOnData(client, id);
    const own = client.database(database.id);
    const error = await refused(403, 5300, own.containers.create({ id: "more", partitionKey: "/pk" }));
    assert.match(error.message, /cannot be authorized by AAD token in data plane/);
    await refused(403, 5300, own.container(id).delete());
  }

  async function aReaderReadsWhereItMay() {
    const [id, other, who] = [await newContainer(), await newContainer(), `reader ${randomUUID()}`];
    await database.container(id).items.create({ id: "1", pk: "a" });
    await assign(who, reader, `/dbs/${database.id}/colls/${id}`);
    const own = connect(new Bearer(who)).database(database.id);
    assert.equal((await own.container(id).item("1", "a").read()).resource.id, "1");
    const error = await refused(403, 5301, own.container(id).items.create({ id: "2", pk: "a" }));
    assert.match(error.message, /containers\/items\/create/);
    await refused(403, 5301, own.container(other).item("1", "a").read());
  }

  async function aStrangerIsRefused() {
    const read = (bearer) => connect(bearer).database(database.id).read();
    await refused(403, 5301, read(new Bearer(`stranger ${randomUUID()}`)));
    const who = `writer ${randomUUID()}`;
    await assign(who, contributor, "/");
    for (const wrong of [{ aud: "https://other.test" }, { iss: "https://other.test" }, { exp: 1 }]) {
      await refused(401, undefined, read(new Bearer(who, wrong)));
    }
  }

  async function aTokenWithTheKeyInItWorksOnData() {
    const client = connect(new KeyBearer(key));
    await workOnData(client, await newContainer());
    await refused(403, 5300, client.database(database.id).delete());
  }

  return {
    aContributorWorksOnDataAndOnNothingElse,
    aReaderReadsWhereItMay,
    aStrangerIsRefused,
    aTokenWithTheKeyInItWorksOnData,
  };
}
