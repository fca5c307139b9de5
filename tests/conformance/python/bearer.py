"""Tokens of an identity provider, with the official Python SDK: cases of conformance.py.

The SDK asks any object with a get_token for its tokens. Two are here: one whose tokens are signed by the provider
in ../provider, and one that makes the unsigned tokens of the SDK's own tests, with the account key in them. The
SDK sends tokens over https only.
"""

import hashlib
import json
import time
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from ssl import CERT_NONE, create_default_context
from urllib.request import Request, urlopen

from azure.core.credentials import AccessToken
from azure.cosmos import CosmosClient, PartitionKey, exceptions

KEY_FILE = Path(__file__).parent.parent / "provider" / "private.json"
CLAIMS = {"iss": "https://provider.test/", "aud": "https://orrery.test"}
READER = "00000000-0000-0000-0000-000000000001"
CONTRIBUTOR = "00000000-0000-0000-0000-000000000002"
# What a signature by RS256 has before the hash.
SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def encode(value):
    value = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def signature(text):
    """RSASSA-PKCS1-v1_5 with SHA-256."""
    key = json.loads(KEY_FILE.read_text())
    n, d = (int.from_bytes(urlsafe_b64decode(key[name] + "==")) for name in "nd")
    length = (n.bit_length() + 7) // 8
    info = SHA256_INFO + hashlib.sha256(text.encode()).digest()
    padded = b"\x00\x01" + b"\xff" * (length - len(info) - 3) + b"\x00" + info
    return pow(int.from_bytes(padded), d, n).to_bytes(length)


class Bearer:
    """Somebody whom the provider vouches for."""

    def __init__(self, name, **claims):
        self.claims = {**CLAIMS, "oid": name, **claims}

    def get_token(self, *_scopes, **_options):
        now = int(time.time())
        claims = {"iat": now, "nbf": now, "exp": now + 3600, **self.claims}
        text = f'{encode({"typ": "JWT", "alg": "RS256", "kid": "tests"})}.{encode(claims)}'
        return AccessToken(f"{text}.{encode(signature(text))}", claims["exp"])


class KeyBearer:
    """As the SDK's own tests do it."""

    def __init__(self, key):
        self.key = key

    def get_token(self, *_scopes, **_options):
        now = int(time.time())
        claims = {"aud": "https://localhost.localhost", "oid": "sdk", "nbf": now, "exp": now + 7200}
        header = {"typ": "JWT", "alg": "RS256", "kid": "CosmosEmulatorPrimaryMaster"}
        return AccessToken(f"{encode(header)}.{encode(claims)}.{encode(self.key.encode())}", claims["exp"])


def assign(world, who, role, scope):
    body = {"assign": {"principalId": who, "roleDefinitionId": role, "scope": scope}}
    request = Request(f"{world.endpoint.rstrip('/')}/_orrery/roles", method="POST", data=json.dumps(body).encode())
    request.add_header("authorization", f"Bearer {world.key}")
    context = create_default_context()
    context.check_hostname, context.verify_mode = False, CERT_NONE
    assert urlopen(request, context=context).status == 200


def connect(world, credential):
    return CosmosClient(world.endpoint, credential, connection_verify=False)


def refused(status, substatus, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except exceptions.CosmosHttpResponseError as error:
        assert (error.status_code, error.sub_status) == (status, substatus), f"{error.status_code}: {error.message}"
        return error
    raise AssertionError(f"not refused with {status}")


def container(world):
    name = f"bearer{uuid.uuid4().hex[:8]}"
    world.database.create_container(name, PartitionKey("/pk"))
    return name


def everything_on_data(client, world, name):
    """What a contributor does, and the SDK with it."""
    items = client.get_database_client(world.name).get_container_client(name)
    items.create_item({"id": "1", "pk": "a", "n": 1})
    items.upsert_item({"id": "2", "pk": "a", "n": 2})
    items.replace_item("1", {"id": "1", "pk": "a", "n": 3})
    items.patch_item("2", "a", [{"op": "incr", "path": "/n", "value": 5}])
    items.execute_item_batch([("create", ({"id": "3", "pk": "a", "n": 1},)), ("read", ("1",))], "a")
    found = items.query_items("SELECT VALUE SUM(c.n) FROM c", enable_cross_partition_query=True)
    assert list(found) == [3 + 7 + 1]
    assert len(list(items.query_items_change_feed(is_start_from_beginning=True))) == 3
    items.delete_item("3", "a")
    return items


def a_contributor_works_on_data_and_on_nothing_else(world):
    name, who = container(world), f"writer {uuid.uuid4()}"
    assign(world, who, CONTRIBUTOR, "/")
    client = connect(world, Bearer(who))
    everything_on_data(client, world, name)
    database = client.get_database_client(world.name)
    error = refused(403, 5300, database.create_container, "more", PartitionKey("/pk"))
    assert "cannot be authorized by AAD token in data plane" in error.message
    refused(403, 5300, database.delete_container, name)
    refused(403, 5300, client.create_database, "more")


def a_reader_reads_where_it_may(world):
    name, other, who = container(world), container(world), f"reader {uuid.uuid4()}"
    world.database.get_container_client(name).create_item({"id": "1", "pk": "a"})
    assign(world, who, READER, f"/dbs/{world.name}/colls/{name}")
    database = connect(world, Bearer(who)).get_database_client(world.name)
    items = database.get_container_client(name)
    assert items.read_item("1", "a")["id"] == "1"
    assert [row["id"] for row in items.query_items("SELECT * FROM c", partition_key="a")] == ["1"]
    error = refused(403, 5301, items.create_item, {"id": "2", "pk": "a"})
    assert "containers/items/create" in error.message
    refused(403, 5301, database.get_container_client(other).read_item, "1", "a")


def a_stranger_is_refused(world):
    refused(403, 5301, connect, world, Bearer(f"stranger {uuid.uuid4()}"))
    who = f"writer {uuid.uuid4()}"
    assign(world, who, CONTRIBUTOR, "/")
    for wrong in [{"aud": "https://other.test"}, {"iss": "https://other.test"}, {"exp": int(time.time()) - 1}]:
        try:
            connect(world, Bearer(who, **wrong))
        except exceptions.CosmosHttpResponseError as error:
            assert error.status_code == 401, f"{wrong}: {error.status_code}"
        else:
            raise AssertionError(f"let in with {wrong}")


def a_token_with_the_key_in_it_works_on_data(world):
    client = connect(world, KeyBearer(world.key))
    everything_on_data(client, world, container(world))
    refused(403, 5300, client.delete_database, world.name)


CASES = [
    a_contributor_works_on_data_and_on_nothing_else,
    a_reader_reads_where_it_may,
    a_stranger_is_refused,
    a_token_with_the_key_in_it_works_on_data,
]
