// A door before the server that shows how many queries of a client are under way at once.
//
// It forwards every request, and holds the server's answers to queries back until as many wait
// as the client is expected to have under way; then for a moment more, in which one too many
// would come. So what it counts does not depend on how fast anybody is.

import http from "node:http";
import https from "node:https";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** What is expected comes within milliseconds; a client that never sends it is not waited for longer. */
const PATIENCE_MS = 10_000;
/** In which one too many comes, if there is one. */
const MOMENT_MS = 40;

export class Gauge {
  #server;
  #door;
  #expected = 1;
  #waiting = 0;
  #enough = new AbortController();
  #seen = { most: 0, asked: [] };

  /** A door before the server at that endpoint. */
  static async before(server) {
    const gauge = new Gauge();
    gauge.#server = server;
    gauge.#door = http.createServer((request, answer) => gauge.#forward(request, answer));
    await once(gauge.#door.listen(0, "127.0.0.1"), "listening");
    return gauge;
  }

  get endpoint() {
    return `http://127.0.0.1:${this.#door.address().port}`;
  }

  /** The most queries that are under way at once while `run` runs, and what they ask for, in no order. */
  async watch(expected, run) {
    [this.#expected, this.#enough] = [expected, new AbortController()];
    this.#seen = { most: 0, asked: [] };
    const result = await run();
    return { result, most: this.#seen.most, asked: this.#seen.asked.sort() };
  }

  #forward(request, answer) {
    const { host: _, ...headers } = request.headers;
    const { request: send } = this.#server.startsWith("https:") ? https : http;
    const onward = send(new URL(request.url, this.#server), { method: request.method, headers });
    onward.on("response", async (given) => {
      if (isPage(headers)) await this.#hold(headers);
      answer.writeHead(given.statusCode, given.headers);
      given.pipe(answer);
    });
    onward.on("error", (error) => answer.destroy(error));
    request.pipe(onward);
  }

  async #hold(headers) {
    const [range, from] = ["x-ms-documentdb-partitionkeyrangeid", "x-ms-continuation"].map((name) => headers[name]);
    this.#seen.asked.push(`${range} ${from ?? ""}`);
    this.#waiting += 1;
    this.#seen.most = Math.max(this.#seen.most, this.#waiting);
    if (this.#waiting >= this.#expected) this.#enough.abort();
    await sleep(PATIENCE_MS, undefined, { signal: this.#enough.signal }).catch(() => "enough wait");
    await sleep(MOMENT_MS);
    this.#waiting -= 1;
  }
}

/** Whether a request is for a page of a query: it is not when it is for a plan. */
function isPage(headers) {
  return headers["content-type"]?.startsWith("application/query+json") && !headers["x-ms-cosmos-is-query-plan-request"];
}
