"""Every row of docs/features.md, on each face that it says has the feature: one function per row, named there.

The three driver programs speak one language, see Tests/CHarness/script/client_script.c.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from conftest import QUICK_BACKOFF
from features import DOCUMENT, HEADINGS, OURS, table
from nacl.secret import SecretBox
from namespaces import Namespace
from paths import CLIENT_SCRIPT, PYTHON, PYTHON_CLIENT, SWIFT_PROGRAMS
from proxies import SocksProxy
from script_client import ScriptClient
from scripted_server import PING, PONG, Connection, ScriptedServer, event, frame, refusing_port, text

from bird_realtime.edge.signing import auth_string, channel_string, shared_secret, signin_string
from bird_realtime.testing import App, EdgeConfig, EdgeServer

PROGRAMS: dict[str, list[str | Path]] = {
    "C": [CLIENT_SCRIPT],
    "Swift": [SWIFT_PROGRAMS / "swift-client"],
    "Python": [PYTHON, PYTHON_CLIENT],
}
APP = App(client_events=True, connection_counting=True)
ROWS = {row.test: row for row in table()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs on the faces that its row says have the feature."""
    row = ROWS.get(metafunc.function.__name__)
    if "on" in metafunc.fixturenames and row is not None:
        metafunc.parametrize("on", row.faces)


# ------------------------------------------------------------------------------------------------------ the table ----


def features_tested() -> list[str]:
    return [name for name, value in globals().items() if name.startswith("test_") and "on" in value.__annotations__]


def test_every_row_has_its_test_and_every_test_its_row() -> None:
    rows = table()
    assert sorted(row.test for row in rows) == sorted(features_tested())
    assert len({row.feature for row in rows}) == len(rows)
    headings = {line for line in DOCUMENT.read_text().splitlines() if line.startswith("| feature ")}
    assert headings == {f"| {' | '.join(HEADINGS)} |"}


def test_no_row_is_skipped() -> None:
    for name in features_tested():
        assert not getattr(globals()[name], "pytestmark", []), name
    assert not re.search(
        r"pytest\.(skip|xfail|importorskip|mark)\b", Path(__file__).read_text().replace(r"pytest\.", "")
    )


def test_a_face_that_lacks_a_feature_says_how_else_it_is_done() -> None:
    def says_why(cell: str) -> bool:
        return not cell.startswith("no") or len(cell) > len("no: ") or "[^" in cell

    assert [(row.test, face) for row in table() for face in OURS if not says_why(row.cells[face])] == []


def test_every_footnote_is_used_and_there() -> None:
    source = DOCUMENT.read_text()
    defined = re.findall(r"^\[\^(\w+)\]: ", source, re.MULTILINE)
    used = set(re.findall(r"\[\^(\w+)\](?!:)", source))
    assert sorted(used) == sorted(defined)


# ----------------------------------------------------------------------------------------------------- the world ----


@pytest.fixture(scope="module")
def one_edge() -> Iterator[EdgeServer]:
    with EdgeServer(EdgeConfig(app=APP, members={"m_7": {"name": "Noor"}, "m_8": None})) as running:
        yield running


@pytest.fixture
def edge(one_edge: EdgeServer, clients: ExitStack) -> EdgeServer:
    """As it was at the start, and without connections; clients end before the test of the next one begins."""
    one_edge.clear_faults()
    one_edge.update_app(connection_count_events=False, watchlist_events=False)
    one_edge.clear_cache()
    one_edge.wait_for_connections(0)
    return one_edge


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


Start = Callable[..., ScriptClient]


@pytest.fixture
def start(on: str, clients: ExitStack, swift_programs: None) -> Start:
    """Starts a client that is not connected yet; options replace those that suit the edge."""

    def begin(host: str, **options: str | int) -> ScriptClient:
        settings: dict[str, str | int] = {
            "app_key": "pk_local",
            "ws_host": host,
            "allow_insecure": 1,
            **QUICK_BACKOFF,
            **options,
        }
        if on == "C":
            settings.setdefault("consume", "dispatch")
        client = ScriptClient(PROGRAMS[on], **settings)
        clients.callback(client.finish)
        return client

    return begin


@pytest.fixture
def connect(start: Start) -> Start:
    """Starts a client on its way to a scripted server."""

    def begin(server: ScriptedServer, **options: str | int) -> ScriptClient:
        client = start(server.host, **options)
        client.do("connect")
        return client

    return begin


@pytest.fixture
def join(start: Start, edge: EdgeServer) -> Start:
    """Starts a client that is connected to the edge, with its endpoints."""

    def begin(**options: str | int) -> ScriptClient:
        endpoints = {"auth_endpoint": edge.auth_endpoint, "member_auth_endpoint": edge.member_auth_endpoint}
        client = start(edge.ws_host, **{**endpoints, **options})
        client.do("connect")
        client.wait_for_state("connected")
        return client

    return begin


def established(server: ScriptedServer, connection_id: str = "1.1", activity_timeout: int = 120) -> Connection:
    connection = server.accept()
    connection.establish(connection_id, activity_timeout)
    return connection


def signed_in(member_data: str) -> dict[str, str]:
    return {"event": "bird:signin_success", "data": json.dumps({"member_data": member_data})}


def subscribe(client: ScriptClient, channel: str) -> dict[str, Any]:
    client.do("subscribe", channel, 0)
    return client.wait_for("subscribed", channel=channel)


def payload(record: dict[str, Any]) -> Any:
    return json.loads(record["data"])


def eventually(client: ScriptClient, statistic: str, least: int) -> None:
    deadline = time.monotonic() + 30
    while client.statistic(statistic) < least:
        assert time.monotonic() < deadline, client.do("statistics")
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------- connection ----


def test_connects(on: str, edge: EdgeServer, start: Start) -> None:
    client = start(edge.ws_host)
    assert client.do("state")["state"] == "initialized"
    client.do("connect")
    client.wait_for("state", previous="initialized", current="connecting")
    connected = client.wait_for("state", previous="connecting", current="connected")
    assert connected["connection_id"] == edge.connections()[0].connection_id
    assert client.do("state")["state"] == "connected"


def test_reconnects_with_backoff(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(backoff_base_ms=40, backoff_max_ms=80)
    edge.fail_http("upgrade", status=503, times=3)
    edge.drop_connections()
    client.wait_for("state", previous="connected", current="unavailable")
    client.wait_for_state("connected")
    waits = [record["delay_ms"] for record in client.all("connecting_in")]
    assert len(waits) == 4
    assert all(0 <= wait <= 80 for wait in waits)
    assert client.statistic("attempts") == 5


def test_state_changes_say_why(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server)
    established(server).send_close(4100, "over capacity")
    lost = client.wait_for_state("unavailable")
    assert (lost["previous"], lost["close_code"]) == ("connected", 4100)
    assert lost["delay_ms"] >= 0
    assert client.wait_for("state", previous="unavailable", current="connecting")["attempt"] == 1


def test_connection_lost_and_connecting_in(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    edge.drop_connections()
    client.wait_for("connection_lost")
    assert 0 <= client.wait_for("connecting_in")["delay_ms"] <= 20
    client.wait_for_state("connected")
    assert len(client.all("connection_lost")) == 1


def test_a_refusal_is_final(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    edge.close_connections(4009, "signed in elsewhere")
    error = client.wait_for("error", code=4009)
    assert error["error"] == "BIRD_ERR_REFUSED"
    assert "signed in elsewhere" in error["message"]
    client.wait_for_state("failed")
    assert not client.all("connecting_in")
    client.do("connect")  # the program may try again
    client.wait_for_state("connected")


def test_the_4200s_reconnect_at_once(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, backoff_base_ms=3_600_000, backoff_max_ms=3_600_000)
    established(server).send_close(4200, "reconnect now")
    assert client.wait_for("connecting_in")["delay_ms"] == 0
    established(server, "2.2")
    client.wait_for("state", current="connected", connection_id="2.2")


def test_flapping_is_slowed(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, flap_guard=1)
    for number in range(3):
        established(server, f"{number}.1").send_close(4200)
    waits = [client.wait_for("connecting_in")["delay_ms"] for _ in range(3)]
    assert waits[:2] == [0, 0]
    assert 1_000 <= waits[2] <= 2_000


def test_may_reconnect(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(may_reconnect=1)
    edge.close_connections(4201, "no pong")
    question = client.wait_for("request", asks="reconnect")
    assert (question["attempt"], question["code"]) == (1, 4201)
    client.do("refuse", question["request"], 0, "not now")
    question = client.wait_for("request", asks="reconnect")
    assert question["attempt"] == 2
    client.do("proceed", question["request"], 30)
    assert client.wait_for("connecting_in", delay_ms=30)
    client.wait_for_state("connected")
    assert client.statistic("attempts_refused") == 1


def test_reconnect_policies(on: str, edge: EdgeServer, join: Start) -> None:
    for policy, waits in (
        ({"reconnect": "fixed", "reconnect_delay_ms": 25}, [25, 25, 25, 25]),
        ({"reconnect": "staged", "reconnect_stages": "2x10,1x40"}, [10, 10, 40, 10]),
    ):
        client = join(**policy)
        edge.fail_http("upgrade", status=503, times=len(waits) - 1)
        edge.drop_connections(edge.connections()[-1].connection_id)
        client.wait_for_state("unavailable")
        client.wait_for_state("connected")
        assert [record["delay_ms"] for record in client.all("connecting_in")] == waits


def test_gives_up(on: str, start: Start) -> None:
    with refusing_port() as port:
        client = start(f"127.0.0.1:{port}", reconnect_attempts_max=2)
        client.do("connect")
        assert client.wait_for_state("disconnected")["reason_text"].startswith("gave up")
        assert client.statistic("attempts") == 3  # that of connect(), and two more


def test_retry_now(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(reconnect="fixed", reconnect_delay_ms=86_400_000)
    edge.drop_connections()
    client.wait_for_state("unavailable")
    client.do("retry_now")
    client.wait_for_state("connected")


def test_network_hint(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(reconnect="fixed", reconnect_delay_ms=86_400_000, network_watch=0)
    edge.drop_connections()
    client.wait_for_state("unavailable")
    client.do("network", 1)
    client.wait_for_state("connected")


def test_network_watch(on: str, clients: ExitStack, swift_programs: None) -> None:
    network = clients.enter_context(Namespace())
    with network.inside():
        server = clients.enter_context(ScriptedServer())
    options: dict[str, str | int] = {"reconnect": "fixed", "reconnect_delay_ms": 86_400_000, "allow_insecure": 1}
    client = ScriptClient(network.command(*PROGRAMS[on]), app_key="pk_test", ws_host=server.host, **options)
    clients.callback(client.finish)
    client.do("connect")
    server.accept().close()
    assert client.wait_for_state("unavailable")["delay_ms"] == 86_400_000
    network.ip("link add cable type veth peer name far", "link set far up", "link set cable up")
    network.ip("addr add 192.0.2.2/24 dev cable", "route add default via 192.0.2.1")
    server.accept().establish()
    client.wait_for_state("connected")


def test_options_change_on_a_living_client(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(reconnect="fixed", reconnect_delay_ms=86_400_000)
    edge.drop_connections()
    client.wait_for_state("unavailable")
    client.do("configure", "reconnect_delay_ms", 10)
    client.wait_for_state("connected")
    refused = client.call("configure", "ws_host", "localhost")
    assert (refused["status"], refused["field"]) == ("BIRD_ERR_STATE", "ws_host")


def test_several_pongs_may_be_missed(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, activity_timeout_ms=100, pong_timeout_ms=100, pong_misses_max=2)
    connection = established(server)
    for _ in range(2):
        connection.expect({"event": "bird:ping"})
    client.wait_for_state("unavailable")


def test_a_dead_connection_is_noticed(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, activity_timeout_ms=100, pong_timeout_ms=100)
    connection = established(server)
    connection.expect({"event": "bird:ping"})
    lost = client.wait_for_state("unavailable")
    assert lost["delay_ms"] == 0
    established(server, "2.2")
    client.wait_for("state", current="connected", connection_id="2.2")


def test_pings_are_answered(on: str, server: ScriptedServer, connect: Start) -> None:
    connect(server)
    connection = established(server)
    connection.send(text({"event": "bird:ping"}) + frame(PING, b"beat"))
    answers = {found.opcode: found for found in (connection.read_frame(), connection.read_frame())}
    assert answers[PONG].payload == b"beat"
    assert answers[1].json == {"event": "bird:pong"}


def test_connecting_has_a_deadline(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, connect_timeout_ms=100)
    with contextlib.suppress(ConnectionError):  # on a busy machine it may be too late already
        server.accept().upgrade()  # and no handshake
    client.wait_for("state", previous="connecting", current="unavailable")
    assert client.all("error", error="BIRD_ERR_TIMEOUT")


def test_disconnect_keeps_the_channels(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    client.do("disconnect")
    client.wait_for_state("disconnected")
    edge.wait_for_connections(0)
    client.do("connect")
    client.wait_for("subscribed", channel="orders", is_resubscribe=1)
    assert list(edge.connections()[0].channels) == ["orders"]


def test_close_sends_what_waits(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, authorizer=1)
    connection = established(server)
    client.do("subscribe", "private-ledger", 0)
    client.do("grant", client.wait_for("request")["request"], "pk:sig")
    connection.join("private-ledger", auth="pk:sig")
    client.wait_for("subscribed")
    for number in range(20):
        client.do("trigger", "private-ledger", "client-x", number)
    closing = threading.Thread(target=client.do, args=("close", 30_000))
    closing.start()
    for number in range(20):
        connection.expect({"event": "client-x", "channel": "private-ledger", "data": number})
    connection.expect_close(1000)
    closing.join()
    assert client.process.poll() is None


def test_a_bad_option_is_named(on: str, start: Start) -> None:
    client = start("two words")
    assert client.created["status"] == "BIRD_ERR_VALUE"
    assert client.created["field"] == "ws_host"
    assert "ws_host" in client.created["message"]


def test_plaintext_is_for_loopback_only(on: str, connect: Start) -> None:
    with ScriptedServer(address="127.0.0.2") as server:
        connect(server, allow_insecure=1)
        assert server.accept().read_byte() == 0x16  # the first byte of a TLS handshake


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("features") / "ca")


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    return authority.server_context("DNS:localhost")


def over_tls(server: ScriptedServer) -> str:
    return f"localhost:{server.port}"


def test_a_ca_of_ones_own(on: str, authority: Authority, tls: ssl.SSLContext, start: Start) -> None:
    with ScriptedServer(tls) as server:
        client = start(over_tls(server), allow_insecure=0, address="127.0.0.1", ca_file=str(authority.file))
        client.do("connect")
        established(server)
        client.wait_for_state("connected")
    with ScriptedServer() as server:
        client = start(over_tls(server), allow_insecure=0, address="127.0.0.1")
        client.do("connect")
        with pytest.raises(ssl.SSLError):
            server.accept().start_tls(tls)
        client.wait_for("error", error="BIRD_ERR_TLS")


def test_proxies(on: str, authority: Authority, tls: ssl.SSLContext, start: Start) -> None:
    with ScriptedServer() as proxy:
        client = start("localhost:4443", allow_insecure=0, ca_file=str(authority.file), proxy=f"http://{proxy.host}")
        client.do("connect")
        connection = proxy.accept()
        assert connection.read_request().startswith(b"CONNECT localhost:4443 HTTP/1.1\r\n")
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.start_tls(tls)
        connection.establish()
        client.wait_for_state("connected")
    with ScriptedServer(tls) as server, SocksProxy() as socks:
        client = start(over_tls(server), allow_insecure=0, ca_file=str(authority.file), proxy=f"socks5h://{socks.host}")
        client.do("connect")
        established(server)
        client.wait_for_state("connected")
        assert [request.host for request in socks.requests] == ["localhost"]


# ------------------------------------------------------------------------------------------------------ channels ----


def test_public_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    assert subscribe(client, "orders")["is_resubscribe"] == 0
    edge.publish("stock.moved", ["orders"], {"left": 4})
    assert payload(client.wait_for("event", channel="orders", event="stock.moved")) == {"left": 4}
    client.do("unsubscribe", "orders")
    edge.wait_for(lambda: not edge.channels(), what="the channel to be left")


def test_private_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "private-ledger")
    edge.publish("booked", ["private-ledger"], 1)
    client.wait_for("event", channel="private-ledger", event="booked")


def test_presence_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    success = subscribe(client, "presence-lobby")
    assert (success["my_id"], success["member_count"]) == ("m_7", 1)
    other = join(header__authorization="Bearer m_8")
    subscribe(other, "presence-lobby")
    assert client.wait_for("member_added", channel="presence-lobby")["member_id"] == "m_8"
    roster = client.do("roster", "presence-lobby")
    assert (roster["members"], roster["my_id"]) == ("m_7 m_8", "m_7")
    other.do("disconnect")
    assert client.wait_for("member_removed", channel="presence-lobby")["member_id"] == "m_8"
    assert client.do("roster", "presence-lobby")["members"] == "m_7"


def test_numeric_member_ids(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, authorizer=1)
    connection = established(server)
    client.do("subscribe", "presence-lobby", 0)
    data = '{"member_id":7}'
    client.do("grant", client.wait_for("request")["request"], "pk:sig", data)
    roster = {"presence": {"ids": [7, "m_8"], "hash": {"7": None, "m_8": None}, "count": 2}}
    connection.join("presence-lobby", roster, auth="pk:sig", member_data=data)
    assert client.wait_for("subscribed")["my_id"] == "7"
    assert client.do("roster", "presence-lobby")["members"] == "7 m_8"


def test_cache_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "cache-prices")
    client.wait_for("event", channel="cache-prices", event="bird:cache_miss")
    edge.publish("price", ["cache-prices"], 12)
    client.wait_for("event", event="price")
    late = join()
    subscribe(late, "cache-prices")
    assert late.wait_for("event", channel="cache-prices")["event"] == "price"


def test_connection_count(on: str, edge: EdgeServer, join: Start) -> None:
    edge.update_app(connection_count_events=True)
    client = join()
    client.do("subscribe", "orders", 0)
    assert payload(client.wait_for("connection_count", channel="orders")) == {"connection_count": 1}
    join().do("subscribe", "orders", 0)
    assert payload(client.wait_for("connection_count", channel="orders")) == {"connection_count": 2}


def test_member_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    client.do("signin", 1, 0)
    client.wait_for("signed_in", member_id="m_7")
    edge.wait_for(lambda: "#server-to-user-m_7" in edge.connections()[0].channels, what="the member channel")
    edge.send_to_member("m_7", "parcel.left", {"parcel": "P-55"})
    assert payload(client.wait_for("event", event="parcel.left")) == {"parcel": "P-55"}


def test_subscribe_is_idempotent(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server)
    for _ in range(3):
        client.do("subscribe", "orders", 0)
    connection = established(server)
    connection.join("orders")
    client.wait_for("subscribed")
    client.do("subscribe", "orders", 0)
    client.do("subscribe", "news", 0)
    connection.expect_subscribe("news")  # nothing in between


def test_success_says_what_was_missed(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    assert subscribe(client, "orders")["interrupted_ms"] == 0
    edge.fail_http("upgrade", delay_s=0.1, times=1)
    edge.drop_connections()
    again = client.wait_for("subscribed", channel="orders")
    assert again["is_resubscribe"] == 1
    assert again["interrupted_ms"] >= 100


def test_denial_says_status_and_endpoint(on: str, edge: EdgeServer, join: Start) -> None:
    edge.deny_channel("private-vip")
    client = join()
    client.do("subscribe", "private-vip", 0)
    error = client.wait_for("subscription_error", channel="private-vip")
    assert (error["will_retry"], error["http_status"], error["endpoint"]) == (0, 403, edge.auth_endpoint)
    edge.allow_channel("private-vip")
    subscribe(client, "private-vip")


def test_bad_channel_name(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    reply = client.call("subscribe", "#bad", 0)
    told = reply if reply["status"] != "BIRD_OK" else client.wait_for("error")
    assert "channel name" in told["message"]
    assert client.do("state")["state"] == "connected"


def test_an_error_of_the_edge_cancels_nothing(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server)
    connection = established(server)
    for name in ("orders", "news"):
        client.do("subscribe", name, 0)
        connection.expect_subscribe(name)
    connection.send_text({"event": "bird:error", "data": {"code": 4301, "message": "too fast"}})
    client.wait_for("error", code=4301)
    for name in ("orders", "news"):
        connection.send_text(event("bird_internal:subscription_succeeded", name, {}))
        client.wait_for("subscribed", channel=name)


def test_client_events(on: str, edge: EdgeServer, join: Start) -> None:
    client, other = join(), join()
    for each in (client, other):
        subscribe(each, "private-ledger")
    client.do("trigger", "private-ledger", "client-said", '{"text":"hello"}')
    assert payload(other.wait_for("event", event="client-said")) == {"text": "hello"}
    assert not client.all("event")


def test_client_events_are_checked(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(client_event_bytes_max=100)
    subscribe(client, "private-ledger")
    subscribe(client, "orders")
    statuses = [
        client.call("trigger", "private-ledger", "said", "1")["status"],
        client.call("trigger", "orders", "client-said", "1")["status"],
        client.call("trigger", "private-ledger", "client-said", json.dumps("x" * 100))["status"],
    ]
    assert statuses == ["BIRD_ERR_NAME", "BIRD_ERR_UNSUPPORTED", "BIRD_ERR_SIZE"]
    client.do("disconnect")
    client.wait_for_state("disconnected")
    assert client.call("trigger", "private-ledger", "client-said", "1")["status"] == "BIRD_ERR_NOT_SUBSCRIBED"
    assert client.statistic("client_events_lost") == 0


def test_payloads_keep_their_bytes(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    for written in ("12345678901234567890.123456789", '{"a": [1e400, -0 ]}', "null"):
        edge.inject_text(json.dumps({"event": "raw", "channel": "orders", "data": written}))
        assert client.wait_for("event", event="raw")["data"] == written


def seal(channel: str, master_key: bytes, data: object) -> dict[str, str]:
    """As a backend with this master key publishes."""
    sealed = SecretBox(base64.b64decode(shared_secret(channel, master_key))).encrypt(json.dumps(data).encode())
    return {
        "nonce": base64.b64encode(sealed.nonce).decode(),
        "ciphertext": base64.b64encode(sealed.ciphertext).decode(),
    }


def test_encrypted_channel(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    vault, key = "private-encrypted-vault", bytes(range(32))
    edge.set_encryption_master_key(key)
    subscribe(client, vault)
    edge.publish("balance", [vault], seal(vault, key, {"balance": 1250}))
    assert payload(client.wait_for("event", channel=vault, event="balance")) == {"balance": 1250}


def test_rotated_key(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    vault = "private-encrypted-vault"
    edge.set_encryption_master_key(bytes(32))
    subscribe(client, vault)
    rotated = bytes(range(32))
    edge.set_encryption_master_key(rotated)
    edge.fail_http("auth", delay_s=0.2, times=1)
    for number in range(20):
        edge.publish("tick", [vault], seal(vault, rotated, number))
    client.wait_for("event", channel=vault, data="19")
    assert [payload(record) for record in client.all("event", channel=vault)] == list(range(20))
    assert client.statistic("authorizations") == 2


def test_lost_encrypted_events_are_told(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    vault = "private-encrypted-vault"
    edge.set_encryption_master_key(bytes(range(32)))
    subscribe(client, vault)
    edge.publish("balance", [vault], seal(vault, bytes(32), 1))
    assert payload(client.wait_for("decryption_error", channel=vault))["event"] == "balance"
    assert not client.all("event", channel=vault)
    assert client.call("trigger", vault, "client-x", "1")["status"] == "BIRD_ERR_UNSUPPORTED"


def test_pusher_dialect(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, dialect="pusher")
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.upgrade()
    connection.send_text(
        {"event": "pusher:connection_established", "data": '{"socket_id":"4242.1357","activity_timeout":120}'}
    )
    assert client.wait_for_state("connected")["connection_id"] == "4242.1357"
    asked = connection.read_frame().json
    assert (asked["event"], asked["data"]["channel"]) == ("pusher:subscribe", "orders")
    connection.send_text(
        event("pusher_internal:subscription_succeeded", "orders", {}),
        event("pusher_internal:subscription_count", "orders", {"subscription_count": 5}),
        event("moved", "orders", 1),
    )
    client.wait_for("subscribed", channel="orders")
    assert payload(client.wait_for("connection_count")) == {"subscription_count": 5}
    client.wait_for("event", event="moved")


# -------------------------------------------------------------------------------------- authorization and signin ----


def test_endpoint_is_sent_headers(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(header__authorization="Bearer m_8")
    assert subscribe(client, "presence-lobby")["my_id"] == "m_8"


def test_authorizer_function(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(authorizer=1)
    client.do("subscribe", "private-ledger", 0)
    question = client.wait_for("request", asks="channel")
    assert question["channel_name"] == "private-ledger"
    signed = channel_string(question["connection_id"], "private-ledger")
    client.do("grant", question["request"], auth_string(edge.app_key, edge.app_secret, signed))
    client.wait_for("subscribed", channel="private-ledger")
    client.do("subscribe", "private-other", 0)
    client.do("refuse", client.wait_for("request", asks="channel")["request"], 0, "never")
    assert "never" in client.wait_for("subscription_error", channel="private-other")["message"]


def test_member_authorizer_function(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(member_authorizer=1)
    client.do("signin", 1, 0)
    question = client.wait_for("request", asks="member")
    data = '{"member_id":"m_9"}'
    signed = signin_string(question["connection_id"], data)
    client.do("grant", question["request"], auth_string(edge.app_key, edge.app_secret, signed), data)
    client.wait_for("completion", tag=1, status="BIRD_OK")
    assert client.do("member")["member_id"] == "m_9"


def test_header_provider(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(header_provider=1)
    for member, channel in (("m_8", "presence-lobby"), ("m_7", "presence-room")):
        client.do("subscribe", channel, 0)
        question = client.wait_for("request", asks="headers")
        assert question["headers_for"] == edge.auth_endpoint
        client.do("headers", question["request"], "authorization", f"Bearer {member}")
        assert client.wait_for("subscribed", channel=channel)["my_id"] == member


def test_transient_failures_are_retried(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    edge.fail_http("auth", status=503, times=1)
    subscribe(client, "private-ledger")
    assert not client.all("subscription_error")
    assert client.statistic("authorizations") == 2


def test_signin(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    client.do("signin", 4, 0)
    client.wait_for("completion", tag=4, operation="signin", status="BIRD_OK")
    assert client.do("member")["member_id"] == "m_7"
    assert edge.wait_for_signin("m_7")


def test_signs_in_again(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    client.do("signin", 1, 0)
    client.wait_for("signed_in", member_id="m_7")
    edge.drop_connections()
    client.wait_for_state("unavailable")
    client.wait_for("signed_in", member_id="m_7")


def test_signin_is_refreshed(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, member_authorizer=1)
    connection = established(server)
    client.wait_for_state("connected")
    data = '{"member_id":"m_7"}'
    for number, refresh in enumerate((0, 1)):
        client.do("signin", number + 1, refresh)
        client.do("grant", client.wait_for("request", asks="member")["request"], "pk:sig", data)
        connection.expect({"event": "bird:signin", "data": {"auth": "pk:sig", "member_data": data}})
        connection.send_text(signed_in(data))
        client.wait_for("completion", tag=number + 1, status="BIRD_OK")
        if number == 0:
            connection.join("#server-to-user-m_7")


def test_signins_share_one_frame(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, member_authorizer=1)
    connection = established(server)
    client.wait_for_state("connected")
    data = '{"member_id":"m_7"}'
    client.do("signin", 1, 0)
    question = client.wait_for("request", asks="member")
    client.do("signin", 2, 0)
    client.do("grant", question["request"], "pk:sig", data)
    connection.expect({"event": "bird:signin", "data": {"auth": "pk:sig", "member_data": data}})
    connection.send_text(signed_in(data))
    connection.expect_subscribe("#server-to-user-m_7")
    client.wait_for("signed_in", member_id="m_7")
    done = {client.wait_for("completion", status="BIRD_OK")["tag"] for _ in range(2)}
    assert done == {1, 2}
    assert len(client.all("request")) == 1


def test_a_failed_signin_of_its_own_is_told(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    client.do("signin", 1, 0)
    client.wait_for("signed_in", member_id="m_7")
    edge.fail_http("member_auth", status=403, times=1)
    edge.drop_connections()
    error = client.wait_for("signin_error")
    assert (error["error"], error["http_status"]) == ("BIRD_ERR_DENIED", 403)
    assert client.do("state")["state"] == "connected"


def test_signin_without_a_connection(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    client.do("disconnect")
    client.wait_for_state("disconnected")
    reply = client.call("signin", 1, 0)
    told = reply if reply["status"] != "BIRD_OK" else client.wait_for("completion", tag=1)
    assert told["status"] == "BIRD_ERR_STATE"


def test_watchlist(on: str, edge: EdgeServer, join: Start) -> None:
    edge.update_app(watchlist_events=True)
    edge.set_watchlist("m_7", ["m_8"])
    client = join()
    client.do("signin", 1, 0)
    assert payload(client.wait_for("watchlist", event="offline")) == ["m_8"]
    other = join(header__authorization="Bearer m_8")
    other.do("signin", 1, 0)
    assert payload(client.wait_for("watchlist", event="online")) == ["m_8"]
    other.do("disconnect")
    assert payload(client.wait_for("watchlist", event="offline")) == ["m_8"]


# ---------------------------------------------------------------------------------------- handlers and delivery ----


def test_handlers_and_their_order(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    for number, where in enumerate(("* moved", "orders", "orders moved", "orders moved", "orders other", "*")):
        client.do("bind", number, *where.split())
    edge.publish("moved", ["orders"], 1)
    edge.publish("end", ["orders"], 2)
    client.wait_for("bound", binding=5, event="end")
    calls = [record["binding"] for record in client.all("bound", event="moved")]
    # The channel's for this event, the client's for it, then those for every event in the same order.
    assert calls == [2, 3, 0, 1, 5]


def test_unbind(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    for number, where in enumerate(("orders moved", "orders", "*")):
        client.do("bind", number, *where.split())
    for removed in range(4):
        edge.publish("moved", ["orders"], removed)
        client.wait_for("event", event="moved", data=str(removed))
        # The driver's own handler is the oldest one of the client: what it heard of is not over yet.
        edge.publish("end", ["orders"], removed)
        client.wait_for("event", event="end", data=str(removed))
        calls = [record["binding"] for record in client.all("bound", event="moved", data=str(removed))]
        assert calls == list(range(removed, 3))
        if removed < 3:
            client.do("unbind", removed)


def test_unbind_by_event_and_all(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    for number, where in enumerate(("orders moved", "orders moved", "orders other", "orders")):
        client.do("bind", number, *where.split())
    for left, remove in (([0, 1, 2, 3], ("unbind_event", "moved")), ([2, 3], ("unbind_all",)), ([], ())):
        before = len(client.all("bound"))
        edge.publish("moved", ["orders"], 1)
        edge.publish("other", ["orders"], 1)
        edge.publish("end", ["orders"], 1)
        client.wait_for("event", event="end")
        calls = [record["binding"] for record in client.all("bound")[before:] if record["event"] != "end"]
        assert sorted(set(calls)) == left
        if remove:
            client.do(remove[0], "orders", *remove[1:])


def test_a_late_handler_hears_how_it_stands(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    client.do("bind", 0, "orders", "bird:subscription_succeeded")
    client.wait_for("bound", binding=0, event="bird:subscription_succeeded")


def test_iteration(on: str, edge: EdgeServer, join: Start) -> None:
    if on == "C":
        client = join(consume="drain")
        kind = "event"
        subscribe(client, "orders")
    else:
        client = join()
        kind = "iterated"
        subscribe(client, "orders")
        client.do("iterate", "orders", 50)
    for number in range(50):
        edge.publish("tick", ["orders"], number)
    assert [payload(client.wait_for(kind, event="tick")) for _ in range(50)] == list(range(50))
    if on != "C":
        client.wait_for("iteration_over")


def test_where_handlers_run(on: str, edge: EdgeServer, join: Start) -> None:
    in_c: list[dict[str, str | int]] = [{"consume": way} for way in ("thread", "dispatch", "drain")]
    in_c.append({"consume": "thread", "delivery": "loop"})
    for options in in_c if on == "C" else [{}]:
        client = join(**options)
        subscribe(client, "orders")
        edge.publish("tick", ["orders"], 1)
        client.wait_for("event", event="tick")


def test_a_slow_program_loses_nothing(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(queue_records_max=50)
    subscribe(client, "orders")
    client.do("pause")
    count = 1_000
    for number in range(count):
        edge.publish("tick", ["orders"], number)
    eventually(client, "read_pauses", 1)
    client.do("resume")
    assert [payload(client.wait_for("event", event="tick")) for _ in range(count)] == list(range(count))


def test_a_slow_program_may_lose_events(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(queue_records_max=50, overflow="drop-newest")
    subscribe(client, "orders")
    client.do("pause")
    for number in range(300):
        edge.publish("tick", ["orders"], number)
    eventually(client, "events_dropped", 100)
    client.do("resume")
    assert client.wait_for("error", field="overflow")["error"] == "BIRD_ERR_FULL"
    assert payload(client.all("event", event="tick")[0]) == 0


def test_large_messages_end_the_connection(on: str, server: ScriptedServer, connect: Start) -> None:
    client = connect(server, message_bytes_max=1_024)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send(text(event("tick", "orders", "x" * 2_000)))
    connection.expect_close(1009)
    client.wait_for("error", error="BIRD_ERR_SIZE")


def test_statistics(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    subscribe(client, "orders")
    before = client.do("statistics")
    edge.publish("tick", ["orders"], "x" * 500)
    eventually(client, "events_delivered", before["events_delivered"] + 1)
    after = client.do("statistics")
    assert after["events_delivered"] - before["events_delivered"] == 1
    assert after["bytes_received"] - before["bytes_received"] > 500
    assert (after["connects"], after["attempts"], after["frames_malformed"]) == (1, 1, 0)


def test_dump(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(header__authorization="Bearer m_8")
    subscribe(client, "private-ledger")
    told = client.do("dump")["dump"]
    assert json.loads(told)["client"]["state"] == "connected"
    assert "private-ledger" in told
    assert "Bearer" not in told


def test_log_handler(on: str, edge: EdgeServer, join: Start) -> None:
    client = join(log_level="verbose")
    edge.deny_channel("private-hidden")
    client.do("subscribe", "private-hidden", 0)
    assert client.wait_for("log", about="private-hidden")["message"]
    edge.allow_channel("private-hidden")


def test_log_file(on: str, edge: EdgeServer, join: Start, tmp_path: Path) -> None:
    file = tmp_path / "bird.log"
    client = join(
        log_file=str(file),
        log_file_level="verbose",
        log_file_bytes_max=3_000,
        log_files_kept=2,
        header__authorization="Bearer m_8",
    )
    client.do("subscribe", "private-ledger", 0)
    while not (tmp_path / "bird.log.1").exists():
        client.wait_for("subscribed", channel="private-ledger")
        edge.drop_connections()
    client.wait_for("subscribed", channel="private-ledger")
    files = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name in ("bird.log", "bird.log.1")}
    assert all(0 < len(text) <= 3_000 for text in files.values())
    assert "private-ledger" in files["bird.log.1"]
    assert not any("Bearer" in text for text in files.values())
    assert not (tmp_path / "bird.log.2").exists()


def test_fork(on: str, edge: EdgeServer, join: Start) -> None:
    client = join()
    assert client.do("fork")["in_child"] == "BIRD_ERR_FORKED"
    subscribe(client, "orders")  # the parent goes on
