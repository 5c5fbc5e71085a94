"""TLS as the library sees it: nginx with certificates of a private CA, and servers that go wrong on purpose.

`REFUSALS` is also the table of docs/network.md, section TLS.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import DAY, Authority, Certificate, openssl, self_signed
from command_edge import CommandEdge
from conftest import QUICK_BACKOFF, StartClient
from nginx import Nginx, Site
from paths import CLIENT_SCRIPT, ROOT
from script_client import Record, ScriptClient
from scripted_server import Connection, ScriptedServer, event, refusing_port, text
from tls_front import TlsFront

RIGHT_NAMES = "DNS:localhost,IP:127.0.0.1,IP:::1"
ALERT_80 = b"\x15\x03\x03\x00\x02\x02\x50"


@dataclass(frozen=True)
class World:
    """The servers of this module, and the files that clients are told about."""

    directory: Path
    ca: Authority
    other_ca: Authority
    server: Certificate
    client: Certificate
    foreign_client: Certificate
    host: str
    ports: dict[str, int]


def client_context(ca: Authority, server: Certificate, version: ssl.TLSVersion) -> ssl.SSLContext:
    """For a server that demands a certificate of this CA."""
    context = server.server_context()
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca.file)
    return context


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, command_edge: CommandEdge) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("tls")
    ca, other_ca = Authority(directory / "right"), Authority(directory / "other")
    right = ca.issue("right", RIGHT_NAMES)
    ask_client = f"ssl_verify_client on; ssl_client_certificate {ca.file};"
    sites = {
        "right": Site(right),
        "right, IPv6": Site(right, host="::1"),
        "other name": Site(ca.issue("other-name", "DNS:example.test,IP:192.0.2.1")),
        "wildcard": Site(ca.issue("wildcard", "DNS:*.example.test")),
        "common name only": Site(ca.issue("localhost", None)),
        "expired": Site(ca.issue("expired", RIGHT_NAMES, valid_from=-2 * DAY, valid_until=-DAY)),
        "not yet valid": Site(ca.issue("early", RIGHT_NAMES, valid_from=DAY, valid_until=2 * DAY)),
        "self-signed": Site(self_signed(directory, "own", RIGHT_NAMES)),
        "TLS 1.1": Site(right, "ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;"),
        "TLS 1.2": Site(right, "ssl_protocols TLSv1.2;"),
        # Only for RSA keys, which the server does not have.
        "no common cipher": Site(right, "ssl_protocols TLSv1.2; ssl_ciphers AES128-SHA;"),
        "unknown name": Site(right, "ssl_reject_handshake on;"),
        "client certificate": Site(right, ask_client),
    }
    with ExitStack() as stack:
        ports = stack.enter_context(Nginx(directory, command_edge.host, sites)).ports
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            front = stack.enter_context(TlsFront(client_context(ca, right, version), command_edge.server.port))
            ports[f"client certificate, {version.name}"] = front.port
        yield World(
            directory,
            ca,
            other_ca,
            right,
            ca.issue("client", None),
            other_ca.issue("client", None),
            command_edge.host,
            ports,
        )


def settings(world: World, options: Mapping[str, object]) -> dict[str, str | int]:
    """For a client that trusts the right CA."""
    defaults = {"allow_insecure": 0, "ca_file": world.ca.file}
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in {**defaults, **options}.items()
        if value is not None
    }


def joins(client: ScriptClient) -> None:
    """The way is open in both directions."""
    client.do("subscribe", "orders", 0)
    client.wait_for("subscribed", channel="orders")


# What works


@pytest.mark.parametrize("trust", ["file", "directory"])
def test_own_ca_is_trusted(world: World, connect: StartClient, trust: str) -> None:
    options: dict[str, object] = {"ca_file": world.ca.file}
    if trust == "directory":
        options = {"ca_file": None, "ca_path": world.ca.hashed_directory}
    joins(connect(world, **settings(world, {"ws_host": f"localhost:{world.ports['right']}", **options})))


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize(
    ("site", "host"),
    [
        ("right", "127.0.0.1"),
        ("right, IPv6", "[::1]"),
        ("TLS 1.2", "localhost"),
        # No alternative name at all: libcurl compares the common name. RFC 9525 has done away with that.
        ("common name only", "localhost"),
        ("wildcard", "edge.example.test"),
    ],
)
def test_names_that_a_certificate_is_for(world: World, connect: StartClient, site: str, host: str) -> None:
    address = {} if site == "right, IPv6" else {"address": "127.0.0.1"}
    joins(connect(world, **settings(world, {"ws_host": f"{host}:{world.ports[site]}", **address})))


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
def test_more_than_a_record(world: World, connect: StartClient) -> None:
    """More than one TLS record, and more than what one read takes."""
    context = world.ca.issue("records", RIGHT_NAMES).server_context()
    with ScriptedServer(context) as server:
        client = connect(server, **settings(world, {"ws_host": f"localhost:{server.port}"}))
        client.do("subscribe", "orders", 0)
        connection = server.accept()
        connection.establish()
        connection.join("orders")
        client.wait_for("subscribed")
        connection.send(b"".join(text(event("tick", "orders", {"n": n, "pad": "x" * 1000})) for n in range(3000)))
        for _ in range(3000):
            client.wait_for("event")


@pytest.mark.parametrize("site", ["client certificate", "client certificate, TLSv1_2", "client certificate, TLSv1_3"])
@pytest.mark.parametrize("form", ["two files", "one file"])
@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
def test_client_certificate(world: World, connect: StartClient, tmp_path: Path, site: str, form: str) -> None:
    options = {"client_cert_file": world.client.file, "client_key_file": world.client.key}
    if form == "one file":
        both = tmp_path / "both.pem"
        both.write_bytes(world.client.file.read_bytes() + world.client.key.read_bytes())
        options = {"client_cert_file": both}
    joins(connect(world, **settings(world, {"ws_host": f"localhost:{world.ports[site]}", **options})))


# What is refused

Server = str | Callable[[Connection, World], None]


def answer_in_plaintext(connection: Connection, _world: World) -> None:
    connection.read_byte()
    connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def send_alert(connection: Connection, _world: World) -> None:
    connection.read_byte()
    connection.send(ALERT_80)


def demand_certificate(version: ssl.TLSVersion) -> Callable[[Connection, World], None]:
    def demand(connection: Connection, world: World) -> None:
        context = client_context(world.ca, world.server, version)
        # It stays open behind the alert, as servers do: a reset could overtake the alert.
        connection.socket = context.wrap_socket(connection.socket, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            connection.socket.do_handshake()

    return demand


def end(connection: Connection, _world: World) -> None:
    connection.socket.recv(65536)
    connection.close()


def reset(connection: Connection, _world: World) -> None:
    connection.read_byte()
    connection.reset()


def stay_silent(connection: Connection, _world: World) -> None:
    connection.read_byte()


def no_options(_world: World) -> dict[str, object]:
    return {}


@dataclass(frozen=True)
class Refusal:
    case: str
    """As the documentation has it, like what the program is told."""
    server: Server
    fact: str
    status: str = "BIRD_ERR_TLS"
    field: str = "tls"
    options: Callable[[World], Mapping[str, object]] = no_options
    host: str = "localhost"


def client_files(
    certificate: Callable[[World], Path], key: Callable[[World], Path]
) -> Callable[[World], dict[str, object]]:
    return lambda world: {"client_cert_file": certificate(world), "client_key_file": key(world)}


REFUSALS = [
    Refusal(
        "another CA than `ca_file` has signed its certificate",
        "right",
        "or the server does not send the intermediate certificates. Trusted are only the CAs of",
        options=lambda world: {"ca_file": world.other_ca.file},
    ),
    Refusal(
        "none of the system's CAs has",
        "right",
        "or the server does not send the intermediate certificates. Trusted are the CAs of",
        options=lambda _: {"ca_file": None},
    ),
    Refusal("its certificate is self-signed", "self-signed", "is self-signed"),
    Refusal("its certificate is for another name", "other name", "is not for localhost. Set tls_verify_name"),
    Refusal("its certificate is for another address", "other name", "is not for 127.0.0.1", host="127.0.0.1"),
    Refusal("its certificate has expired", "expired", "has expired"),
    Refusal("its certificate is not valid yet", "not yet valid", "is not valid yet. Check the clock"),
    Refusal("it speaks TLS 1.1 only", "TLS 1.1", "does not speak TLS 1.2 or later"),
    Refusal(
        "it speaks TLS 1.2 only and `tls_min_version` is 1.3",
        "TLS 1.2",
        "does not speak TLS 1.3 or later, which tls_min_version demands",
        options=lambda _: {"tls_min_version": "1.3"},
    ),
    Refusal("it has no cipher in common", "no common cipher", "no common cipher, or it demands a client certificate"),
    Refusal("it has no host of that name (SNI)", "unknown name", "has no host of the name localhost"),
    Refusal(
        "it demands a client certificate, in TLS 1.3",
        demand_certificate(ssl.TLSVersion.TLSv1_3),
        "demands a client certificate. Set client_cert_file",
    ),
    Refusal(
        "it demands one, in TLS 1.2",
        demand_certificate(ssl.TLSVersion.TLSv1_2),
        "no common cipher, or it demands a client certificate",
    ),
    Refusal(
        "it demands one and says so by HTTP, as nginx does",
        "client certificate",
        "HTTP status 400",
        status="BIRD_ERR_UPGRADE",
        field="upgrade",
    ),
    Refusal(
        "it does not trust who has signed the client certificate",
        demand_certificate(ssl.TLSVersion.TLSv1_3),
        "does not accept the client certificate (alert 48)",
        options=client_files(lambda world: world.foreign_client.file, lambda world: world.foreign_client.key),
    ),
    Refusal(
        "the same, in TLS 1.2",
        demand_certificate(ssl.TLSVersion.TLSv1_2),
        "does not accept the client certificate (alert 48)",
        options=client_files(lambda world: world.foreign_client.file, lambda world: world.foreign_client.key),
    ),
    Refusal(
        "any; `client_key_file` belongs to another certificate",
        "right",
        "and belong to client_cert_file",
        field="client_key_file",
        options=client_files(lambda world: world.client.file, lambda world: world.foreign_client.key),
    ),
    Refusal(
        "any; `client_key_file` has a passphrase",
        "right",
        "client_key_file must be PEM, have no passphrase",
        field="client_key_file",
        options=client_files(lambda world: world.client.file, lambda world: locked_key(world)),
    ),
    Refusal(
        "any; `client_cert_file` has no certificate",
        "right",
        "client_cert_file must be PEM",
        field="client_cert_file",
        options=client_files(lambda world: world.client.key, lambda world: world.client.key),
    ),
    Refusal(
        "any; `ca_file` has no certificate",
        "right",
        "cannot be used. They must be PEM",
        field="ca_file",
        options=lambda world: {"ca_file": world.client.key},
    ),
    Refusal("it does not speak TLS", answer_in_plaintext, "does not speak TLS on this port"),
    Refusal("it sends another alert", send_alert, "refused the handshake (alert 80)"),
    Refusal("it ends the connection in the handshake", end, "the connection ended during the TLS handshake"),
    Refusal("it resets the connection in the handshake", reset, "the connection ended during the TLS handshake"),
    Refusal(
        "it is silent; after `connect_timeout_ms`",
        stay_silent,
        "It was at this step: tls",
        status="BIRD_ERR_TIMEOUT",
        options=lambda _: {"connect_timeout_ms": 1500},
    ),
]


def locked_key(world: World) -> Path:
    key = world.directory / "locked.key"
    openssl("ec", "-in", world.client.key, "-aes128", "-passout", "pass:secret", "-out", key)
    return key


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.case)
def test_refusal(world: World, connect: StartClient, refusal: Refusal) -> None:
    with ScriptedServer() as misbehaving:
        port = world.ports[refusal.server] if isinstance(refusal.server, str) else misbehaving.port
        options = {"ws_host": f"{refusal.host}:{port}", "address": "127.0.0.1", **refusal.options(world)}
        client = connect(world, **settings(world, options))
        if not isinstance(refusal.server, str):
            refusal.server(misbehaving.accept(), world)
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == (refusal.status, refusal.field), error
        assert refusal.fact in error["message"]
        assert client.wait_for_state("unavailable")["reason"] == refusal.status


@pytest.mark.c_only("the message is the library's")
def test_refused_connection_says_so(world: World, connect: StartClient) -> None:
    with refusing_port() as port:
        client = connect(world, **settings(world, {"ws_host": f"localhost:{port}", "address": "127.0.0.1"}))
        assert client.wait_for("error")["message"] == f"No connection to localhost:{port}: Connection refused."


def test_documentation_has_the_refusals() -> None:
    section = (ROOT / "docs/network.md").read_text().split("\n## TLS\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| (.*?) +\| `(BIRD_\w+)` +\| `(\w+)` +\| (.*?) +\|$", section, re.MULTILINE)
    assert documented == [(row.case, row.status, row.field, row.fact) for row in REFUSALS]


@pytest.mark.c_only("completion records")
@pytest.mark.parametrize(
    "refusal",
    [row for row in REFUSALS if row.status == "BIRD_ERR_TLS"],
    ids=lambda refusal: refusal.case,
)
def test_refusal_of_an_authorizer(
    world: World, command_edge: CommandEdge, connect: StartClient, refusal: Refusal
) -> None:
    with ScriptedServer() as misbehaving:
        port = world.ports[refusal.server] if isinstance(refusal.server, str) else misbehaving.port
        endpoint = f"https://{refusal.host}:{port}/auth"
        options = {"allow_insecure": 1, "auth_endpoint": endpoint, **refusal.options(world)}
        client = connect(command_edge, **settings(world, options))
        client.do("subscribe", "private-ledger", 3)
        if not isinstance(refusal.server, str):
            for _ in range(4):  # the first and three more
                refusal.server(misbehaving.accept(), world)
        error = client.wait_for("subscription_error")
    assert (error["error"], error["field"], error["endpoint"]) == ("BIRD_ERR_AUTH", refusal.field, endpoint), error
    assert refusal.fact.replace("tls_verify_name", "auth_endpoint") in error["message"]
    assert error["will_retry"] == 1


def test_authorizer_that_is_trusted(world: World, command_edge: CommandEdge, connect: StartClient) -> None:
    endpoint = f"https://localhost:{world.ports['client certificate']}/auth"
    files = {"client_cert_file": world.client.file, "client_key_file": world.client.key}
    client = connect(command_edge, **settings(world, {"allow_insecure": 1, "auth_endpoint": endpoint, **files}))
    client.do("subscribe", "private-ledger", 0)
    client.wait_for("subscribed")


@pytest.mark.parametrize("fault", ["self-signed", "another name"])
def test_nothing_is_sent_to_a_server_that_is_not_trusted(world: World, connect: StartClient, fault: str) -> None:
    signed = {
        "self-signed": lambda: self_signed(world.directory, "silent", RIGHT_NAMES),
        "another name": lambda: world.ca.issue("silent-other", "DNS:other.example.test"),
    }
    context = signed[fault]().server_context()
    with ScriptedServer() as server:
        client = connect(world, **settings(world, {"ws_host": f"localhost:{server.port}"}))
        connection = server.accept()
        with (
            contextlib.suppress(ssl.SSLError, ConnectionError),
            context.wrap_socket(connection.socket, server_side=True) as session,
        ):
            assert session.recv(65536) == b""
        assert client.wait_for("error")["error"] == "BIRD_ERR_TLS"


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_plaintext_needs_the_flag(connect: StartClient, host: str) -> None:
    with ScriptedServer() as server:
        connect(server, ws_host=f"{host}:{server.port}", allow_insecure=0)
        assert server.accept().read_byte() == 0x16  # a TLS hello


# Files that the machine does not have


@pytest.mark.parametrize("option", ["ca_file", "ca_path", "client_cert_file", "client_key_file"])
@pytest.mark.parametrize("problem", ["missing", "of the wrong kind"])
def test_create_looks_at_the_file_of_an_option(world: World, tmp_path: Path, option: str, problem: str) -> None:
    path = tmp_path / "missing"
    if problem == "of the wrong kind":
        path = world.ca.file if option == "ca_path" else tmp_path
    created = create(world, {"client_cert_file": world.client.file, option: path})
    assert (created["status"], created["field"]) == ("BIRD_ERR_VALUE", option), created
    assert str(path) in created["message"]


def test_create_wants_a_certificate_for_the_key(world: World) -> None:
    created = create(world, {"client_key_file": world.client.key})
    assert (created["status"], created["field"]) == ("BIRD_ERR_VALUE", "client_key_file"), created
    assert "set client_cert_file" in created["message"]


def create(world: World, options: Mapping[str, object]) -> Record:
    client = ScriptClient([CLIENT_SCRIPT], app_key="pk_test", ws_host=world.host, **settings(world, options))
    client.finish()
    return client.created


# Names


@dataclass
class Hello:
    """What a client said in its TLS hello."""

    name: str | None = "no hello"


def listening_context(certificate: Certificate) -> tuple[ssl.SSLContext, Hello]:
    context, hello = certificate.server_context(), Hello()

    def take(_socket: object, name: str | None, _context: object) -> None:
        hello.name = name

    context.sni_callback = take
    return context, hello


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize(
    ("host", "options", "server_name"),
    [
        ("localhost", {}, "localhost"),
        ("127.0.0.1", {}, None),
        # Where the connection goes to is one thing, whom it must reach another.
        ("edge.example.test", {"address": "127.0.0.1"}, "edge.example.test"),
        ("127.0.0.1", {"tls_verify_name": "edge.example.test"}, "edge.example.test"),
        ("localhost", {"tls_verify_name": "edge.example.test"}, "edge.example.test"),
        ("unknown.test", {"address": "127.0.0.1", "tls_verify_name": "edge.example.test"}, "edge.example.test"),
        ("unknown.test", {"address": "127.0.0.1", "tls_verify_name": "127.0.0.1"}, None),
        ("unknown.test", {"address": "127.0.0.1", "tls_verify_name": "[::1]"}, None),
        ("unknown.test", {"address": "127.0.0.1", "tls_verify_name": "::1"}, None),
    ],
)
def test_server_name(
    world: World, names: Certificate, connect: StartClient, host: str, options: dict[str, str], server_name: str | None
) -> None:
    context, hello = listening_context(names)
    with ScriptedServer(context) as server:
        client = connect(world, **settings(world, {"ws_host": f"{host}:{server.port}", **options}))
        connection = server.accept()
        connection.establish()
        client.wait_for_state("connected")
        assert hello.name == server_name
        # The upgrade goes to the host all the same.
        assert f"\r\nHost: {host}:{server.port}\r\n".encode() in connection.request


@pytest.mark.parametrize(("host", "server_name"), [("localhost", "localhost"), ("127.0.0.1", None)])
def test_server_name_of_an_authorizer(
    world: World,
    names: Certificate,
    command_edge: CommandEdge,
    connect: StartClient,
    host: str,
    server_name: str | None,
) -> None:
    context, hello = listening_context(names)
    with ScriptedServer(context) as authorizer:
        endpoint = f"https://{host}:{authorizer.port}/auth"
        client = connect(command_edge, **settings(world, {"allow_insecure": 1, "auth_endpoint": endpoint}))
        client.do("subscribe", "private-ledger", 0)
        post = authorizer.accept()
        head, _ = post.read_post()
        assert f"\r\nHost: {host}:{authorizer.port}\r\n" in head
        post.respond(200, '{"auth": "key:signature"}')
        client.wait_for("subscribed")
        assert hello.name == server_name


@pytest.fixture(scope="module")
def names(world: World) -> Certificate:
    return world.ca.issue("names", RIGHT_NAMES + ",DNS:edge.example.test")


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("name", ["other.example.test", "127.0.0.2"])
def test_verified_name_is_the_only_one(world: World, connect: StartClient, name: str) -> None:
    options = {"ws_host": f"localhost:{world.ports['right']}", "tls_verify_name": name}
    error = connect(world, **settings(world, options)).wait_for("error")
    assert error["error"] == "BIRD_ERR_TLS"
    assert f"is not for {name}. Set tls_verify_name" in error["message"]


def tunnel(connection: Connection, target: str, context: ssl.SSLContext) -> Connection:
    """A proxy, and the server behind it."""
    assert connection.read_request().startswith(f"CONNECT {target} HTTP/1.1\r\n".encode())
    connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
    return Connection(context.wrap_socket(connection.socket, server_side=True))


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("host", ["unknown.test:4443", "192.0.2.7:4443", "[2001:db8::7]:4443"])
@pytest.mark.parametrize("verified", [True, False])
def test_server_name_behind_a_proxy(
    world: World, names: Certificate, connect: StartClient, host: str, verified: bool
) -> None:
    context, hello = listening_context(names)
    options = {"tls_verify_name": "edge.example.test"} if verified else {}
    with ScriptedServer() as proxy:
        client = connect(world, **settings(world, {"ws_host": host, "proxy": f"http://{proxy.host}", **options}))
        with tunnel(proxy.accept(), host, context) as connection:
            if verified:
                connection.establish()
                client.wait_for_state("connected")
                assert hello.name == "edge.example.test"
                assert f"\r\nHost: {host}\r\n".encode() in connection.request
            else:
                assert connection.expect_end() == b""
                assert "Set tls_verify_name" in client.wait_for("error")["message"]


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
def test_silence_behind_a_proxy(world: World, connect: StartClient) -> None:
    with ScriptedServer() as proxy:
        options = {"ws_host": "unknown.test:4443", "proxy": f"http://{proxy.host}", "connect_timeout_ms": 1500}
        client = connect(world, **settings(world, options))
        connection = proxy.accept()
        connection.read_request()
        connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == ("BIRD_ERR_TIMEOUT", "tls")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bücher.test", "write a name outside ASCII in its xn-- form"),
        ("edge.test:443", "leave out the port"),
        ("[::1]:443", "leave out the port"),
        ("edge/test", "has a character that no host name has"),
        ("::g", "IPv6"),
        ("", "has no host name"),
    ],
)
def test_name_that_cannot_be_verified_is_refused_with_the_reason(world: World, name: str, says: str) -> None:
    created = create(world, {"tls_verify_name": name})
    assert (created["status"], created["field"]) == ("BIRD_ERR_VALUE", "tls_verify_name"), created
    assert says in created["message"]


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
def test_reset_behind_the_handshake_is_a_lost_connection(world: World, connect: StartClient) -> None:
    with ScriptedServer(world.server.server_context()) as server:
        client = connect(world, **settings(world, {"ws_host": f"localhost:{server.port}"}))
        server.accept().reset()
        error = client.wait_for("error")
        assert error["error"] == "BIRD_ERR_LOST", error
        assert f"No connection to localhost:{server.port}: " in error["message"]
        assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_LOST"


# The CA certificates of the machine


@pytest.fixture
def on_machine(world: World) -> Iterator[StartClient]:
    """Starts a client that tries to connect on a machine whose /etc has only the files given."""
    isolated = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount"]
    if subprocess.run([*isolated, "true"], check=False).returncode != 0:
        pytest.skip("this machine allows no mount namespaces")
    with ExitStack() as stack:

        def begin(etc: Mapping[str, Path], environment: Mapping[str, str], **options: str | int) -> ScriptClient:
            copies = ["mount -t tmpfs none /etc || exit 9"]
            for path, source in etc.items():
                copies.append(f"mkdir -p {Path(path).parent}; cp -R {source} {path} || exit 9")
            script = "; ".join([*copies, 'exec "$@"'])
            variables = [f"{name}={value}" for name, value in environment.items()]
            clean = ["env", "-u", "SSL_CERT_FILE", "-u", "SSL_CERT_DIR", *variables]
            program: list[str | Path] = [*isolated, "sh", "-c", script, "sh", *clean, CLIENT_SCRIPT]
            host = f"127.0.0.1:{world.ports['right']}"
            client = ScriptClient(program, app_key="pk_test", ws_host=host, **QUICK_BACKOFF, **options)
            stack.callback(client.finish)
            assert client.created["status"] == "BIRD_OK", client.created
            client.do("connect")
            return client

        yield begin


DEBIAN, FEDORA = "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"


@pytest.mark.parametrize("path", [DEBIAN, FEDORA, "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem", "/etc/ssl/certs"])
def test_bundle_of_a_distribution(world: World, on_machine: StartClient, path: str) -> None:
    source = world.ca.hashed_directory if path == "/etc/ssl/certs" else world.ca.file
    joins(on_machine({path: source}, {}))


def test_environment_comes_before_the_system(world: World, on_machine: StartClient) -> None:
    joins(on_machine({DEBIAN: world.other_ca.file}, {"SSL_CERT_FILE": str(world.ca.file)}))
    joins(on_machine({FEDORA: world.other_ca.file}, {"SSL_CERT_DIR": f"/none:{world.ca.hashed_directory}"}))


def test_options_come_before_the_environment(world: World, on_machine: StartClient) -> None:
    joins(on_machine({}, {"SSL_CERT_FILE": str(world.other_ca.file)}, ca_file=str(world.ca.file)))


@pytest.mark.parametrize("option", ["ca_file", "ca_path"])
def test_options_are_instead_of_the_system(world: World, on_machine: StartClient, option: str) -> None:
    """libcurl of Debian would look into /etc/ssl/certs all the same."""
    value = world.other_ca.file if option == "ca_file" else world.other_ca.hashed_directory
    etc = {"/etc/ssl/certs": world.ca.hashed_directory, FEDORA: world.ca.file}
    error = on_machine(etc, {}, **{option: str(value)}).wait_for("error")
    assert error["error"] == "BIRD_ERR_TLS"
    assert f"Trusted are only the CAs of {value}" in error["message"]


def test_machine_without_a_bundle(on_machine: StartClient) -> None:
    error = on_machine({}, {}).wait_for("error")
    assert (error["error"], error["field"]) == ("BIRD_ERR_TLS", "tls")
    assert "No CA certificates were found on this machine: install" in error["message"]
    assert "set ca_file" in error["message"]


def test_environment_that_names_nothing(world: World, on_machine: StartClient) -> None:
    error = on_machine({DEBIAN: world.ca.file}, {"SSL_CERT_FILE": "/none"}).wait_for("error")
    assert error["error"] == "BIRD_ERR_TLS"
    assert "SSL_CERT_FILE and SSL_CERT_DIR name nothing" in error["message"]
