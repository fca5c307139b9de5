"""A server that knows nothing: it answers every request with the same words.

A test of Microsoft's suite that passes against it says nothing about a server. Prints
the same ready line as Orrery does.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESOURCE = {"id": "stub", "_rid": "AAAAAgAAAAA=", "_self": "dbs/AAAAAg==/colls/AAAAAgAAAAA=/", "_etag": '"1"', "_ts": 1,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "indexingPolicy": {}, "_count": 0}
RANGE = {"id": "0", "_rid": "AAAAAgAAAAA=", "minInclusive": "", "maxExclusive": "FF", "parents": []}
FEEDS = ["Databases", "DocumentCollections", "Documents", "Offers", "Users", "Permissions", "StoredProcedures",
         "Triggers", "UserDefinedFunctions", "Conflicts"]


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        location = {"name": "stub", "databaseAccountEndpoint": f"http://{self.headers.get('host')}/"}
        account = {"writableLocations": [location], "readableLocations": [location],
                   "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"}}
        return {**RESOURCE, **account, **{feed: [] for feed in FEEDS}, "PartitionKeyRanges": [RANGE]}

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        known = self.path.rstrip("/").endswith("pkranges") and self.headers.get("if-none-match")
        status = 304 if known else {"POST": 201, "DELETE": 204}.get(self.command, 200)
        body = b"" if status in (204, 304) else json.dumps(self.body()).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"1"')
        self.send_header("x-ms-session-token", "0:-1#1")
        self.send_header("x-ms-request-charge", "1")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

    def log_message(self, *_arguments):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    endpoint = f"http://127.0.0.1:{server.server_port}/"
    print(json.dumps({"event": "ready", "endpoint": endpoint, "tlsEndpoint": endpoint, "key": "c3R1Yg=="}), flush=True)
    server.serve_forever()
