"""Through proxies to an edge that speaks TLS: the ways that work, and what the program is told when one does not.

`CASES` is also the table of docs/network.md, section Proxies.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest
from certificates import Authority
from command_edge import CommandEdge
from conftest import FACES, QUICK_BACKOFF
from name_server import EAI_NONAME, NameServer
from paths import ROOT
from proxies import Misbehaving, SocksProxy, Tinyproxy
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, refusing_port
from tls_front import TlsFront

USER, PASSWORD = "guest", "p@ss:wörd"
IN_URL = "guest:p%40ss:w%C3%B6rd"
PLAIN_PASSWORD = "Sesame"  # tinyproxy's configuration knows letters and digits only
PLAIN_IN_URL = "guest:S%65same"
WRONG = "guest:not-this-one"
SECRETS = (PLAIN_PASSWORD, "S%65same", "p@ss", "p%40ss", "w%C3%B6rd", "wörd", "not-this-one", "key-of-the-program")


@dataclass(frozen=True)
class World:
    directory: Path
    ca: Authority
    other_ca: Authority
    edge: str
    """Host and port of an edge that speaks TLS."""
    open: Tinyproxy
    closed: Tinyproxy
    """Wants a user and a password."""
    strict: Tinyproxy
    """Connects to no port that an edge has here."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, command_edge: CommandEdge) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("proxies")
    ca, other_ca = Authority(directory / "right"), Authority(directory / "other")
    context = ca.issue("edge", "DNS:localhost,DNS:edge.test,IP:127.0.0.1").server_context()
    with ExitStack() as stack:
        front = stack.enter_context(TlsFront(context, command_edge.server.port))
        yield World(
            directory,
            ca,
            other_ca,
            f"localhost:{front.port}",
            stack.enter_context(Tinyproxy(directory / "open")),
            stack.enter_context(Tinyproxy(directory / "closed", f"BasicAuth {USER} {PLAIN_PASSWORD}")),
            stack.enter_context(Tinyproxy(directory / "strict", "ConnectPort 1")),
        )


@pytest.fixture
def names(tmp_path: Path) -> Iterator[NameServer]:
    with NameServer(tmp_path) as server:
        yield server


Start = Callable[..., ScriptClient]


@pytest.fixture
def connect(world: World, names: NameServer) -> Iterator[Start]:
    """Clients of the edge. `environment` are variables; names are looked up at the scripted name service."""
    with ExitStack() as stack:

        def begin(environment: dict[str, str] | None = None, **options: str | int) -> ScriptClient:
            settings = {
                "app_key": "pk_test",
                "ws_host": world.edge,
                "ca_file": str(world.ca.file),
                **QUICK_BACKOFF,
                **options,
            }
            variables = [f"{name}={value}" for name, value in (environment or {}).items()]
            client = ScriptClient([*names.prefix, *variables, *FACES["c"]], **settings)
            stack.callback(client.finish)
            assert client.created["status"] == "BIRD_OK", client.created
            client.do("connect")
            return client

        yield begin


# Ways that work


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_http_proxy(world: World, names: NameServer, connect: Start, host: str) -> None:
    client = connect(proxy=f"http://{world.open.host}", ws_host=world.edge.replace("localhost", host))
    client.wait_for_state("connected")
    assert f"CONNECT {host}:" in world.open.log
    assert names.count == 0  # the proxy resolves the edge's name


def test_http_proxy_with_credentials(world: World, connect: Start) -> None:
    connect(proxy=f"http://{PLAIN_IN_URL}@{world.closed.host}").wait_for_state("connected")


def test_name_of_the_proxy(world: World, names: NameServer, connect: Start) -> None:
    client = connect(proxy=f"http://proxy.test:{world.open.port}")
    question = names.next()
    assert question.name == "proxy.test"
    question.answer("127.0.0.2", "127.0.0.1")
    client.wait_for_state("connected")
    assert names.count == 1


@pytest.mark.parametrize("credentials", [None, (USER, PASSWORD)], ids=["open", "credentials"])
def test_socks_proxy(world: World, names: NameServer, connect: Start, credentials: tuple[str, str] | None) -> None:
    prefix = f"{IN_URL}@" if credentials else ""
    port = int(world.edge.split(":")[1])
    with SocksProxy(credentials=credentials) as proxy:
        host = f"edge.test:{port}"
        connect(proxy=f"socks5h://{prefix}{proxy.host}", ws_host=host).wait_for_state("connected")
        assert names.count == 0
        client = connect(proxy=f"socks5://{prefix}{proxy.host}", ws_host=host)
        question = names.next()
        assert question.name == "edge.test"
        question.answer("127.0.0.9")
        client.wait_for_state("connected")
        client = connect(proxy=f"socks5://{prefix}{proxy.host}", ws_host=host, address="127.0.0.8")
        client.wait_for_state("connected")
        assert names.whole == ["edge.test"]
        # The own machine's name needs no look-up, and means 127.0.0.1 to the proxy too.
        connect(proxy=f"socks5://{prefix}{proxy.host}").wait_for_state("connected")
        assert [(request.host, request.port) for request in proxy.requests] == [
            ("edge.test", port),
            ("127.0.0.9", port),
            ("127.0.0.8", port),
            ("127.0.0.1", port),
        ]
        for request in proxy.requests:
            assert request.credentials == credentials
            assert request.methods == (b"\x00\x02" if credentials else b"\x00")


# As they stand in the URL, and as they arrive: decoded once.
CREDENTIALS = [
    ("us%25er", "p%2540"),
    ("us%40er", "p%3Aq%40r"),
    ("user", "100%"),
    ("user", "%25%2525"),
    ("user", "a+b%2Bc%20d"),
    ("%C3%BCser", "p%C3%A9%26%3D"),
]


@pytest.mark.parametrize(("user", "password"), CREDENTIALS)
def test_credentials_arrive_decoded_once(connect: Start, user: str, password: str) -> None:
    decoded = (unquote(user), unquote(password))
    with ScriptedServer() as proxy:
        connect(proxy=f"http://{user}:{password}@{proxy.host}")
        given = re.search(rb"\r\nProxy-Authorization: Basic (\S+)\r\n", proxy.accept().read_request())
        assert given
        assert base64.b64decode(given[1]).decode() == ":".join(decoded)
    with SocksProxy(credentials=decoded) as socks_proxy:
        client = connect(proxy=f"socks5h://{user}:{password}@{socks_proxy.host}")
        client.wait_for_state("connected")
        assert socks_proxy.requests[0].credentials == decoded


def test_colon_in_a_user(connect: Start) -> None:
    """Which only SOCKS can tell from the end of the user's name."""
    with SocksProxy(credentials=("a:b", "c")) as proxy:
        connect(proxy=f"socks5h://a%3Ab:c@{proxy.host}").wait_for_state("connected")


def test_address_behind_a_proxy(connect: Start) -> None:
    """A name that only this program knows: the proxy gets the address, TLS and the edge the name."""
    with ScriptedServer() as proxy:
        connect(ws_host="edge.test:8443", address="192.0.2.7", proxy=f"http://{proxy.host}")
        assert proxy.accept().read_request().startswith(b"CONNECT 192.0.2.7:8443 HTTP/1.1\r\n")


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_proxy_of_the_environment(connect: Start, variable: str, scheme: str) -> None:
    with ScriptedServer() as proxy:
        connect({variable: f"{scheme}://{proxy.host}"})
        assert proxy.accept().read_byte() == {"http": ord("C"), "socks5h": 5}[scheme]


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, {"proxy": ""}),
        ({"no_proxy": "other.test, .localhost"}, {}),
        ({"NO_PROXY": "*"}, {}),
        ({"no_proxy": "127.0.0.0/8"}, {"ws_host": "127.0.0.1"}),
    ],
)
def test_no_proxy(
    world: World, names: NameServer, connect: Start, environment: dict[str, str], options: dict[str, str]
) -> None:
    port = world.edge.split(":")[1]
    with ScriptedServer() as proxy:
        if "ws_host" in options:
            options = {"ws_host": f"{options['ws_host']}:{port}"}
        client = connect({"https_proxy": f"http://{proxy.host}", **environment}, **options)
        client.wait_for_state("connected")
        assert names.count == 0
        assert proxy.is_left_alone_for(0.05)


def test_plaintext_takes_no_proxy(command_edge: CommandEdge, auth: ScriptedServer, connect: Start) -> None:
    with ScriptedServer() as proxy:
        url = f"http://{proxy.host}"
        variables = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"), url)
        client = connect(
            variables,
            proxy=url,
            ws_host=command_edge.host,
            allow_insecure=1,
            auth_endpoint=f"http://{auth.host}/auth",
        )
        client.wait_for_state("connected")
        client.do("subscribe", "private-a", 0)
        request = auth.accept()
        request.read_post()
        request.respond(200, '{"auth": "key:signature"}')
        client.wait_for("subscribed")
        assert proxy.is_left_alone_for(0.05)


def test_authorizer_behind_the_proxy(world: World, connect: Start) -> None:
    """And nothing that is meant for the authorizer is told to the proxy."""
    certificate = world.ca.issue("authorizer", "DNS:authorizer.test")
    with ScriptedServer() as proxy:
        client = connect(
            proxy=f"http://{IN_URL}@{proxy.host}",
            auth_endpoint="https://authorizer.test:8443/auth",
            header__Authorization="Bearer key-of-the-program",
        )
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode())
        edge = proxy.accept()
        expected = f"CONNECT {world.edge} HTTP/1.1\r\nHost: {world.edge}\r\n".encode()
        assert edge.read_request() == expected + b"Proxy-Authorization: Basic " + basic + (
            b"\r\nProxy-Connection: Keep-Alive\r\n\r\n"
        )
        edge.send(b"HTTP/1.1 200 OK\r\n\r\n")
        edge.start_tls(world.ca.issue("stand-in", "DNS:localhost").server_context())
        edge.establish()
        client.wait_for_state("connected")
        client.do("subscribe", "private-a", 0)
        post = proxy.accept()
        request = post.read_request()
        assert request.startswith(b"CONNECT authorizer.test:8443 HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic " + basic in request
        assert b"key-of-the-program" not in request
        post.send(b"HTTP/1.1 200 OK\r\nRetry-After: 1\r\nLocation: nowhere\r\n\r\n")
        post.start_tls(certificate.server_context())
        head, body = post.read_post()
        assert "Bearer key-of-the-program" in head
        assert basic.decode() not in head
        assert body["channel_name"] == "private-a"
        post.respond(200, '{"auth": "key:signature"}')
        edge.join("private-a", auth="key:signature")
        client.wait_for("subscribed")


def test_variable_without_a_scheme_is_http(connect: Start) -> None:
    """As for curl, whose variables these are."""
    with ScriptedServer() as proxy:
        connect({"https_proxy": proxy.host})
        assert proxy.accept().read_byte() == ord("C")


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("proxy.test:3128", "has no scheme, as in http://"),
        ("guest:p@ss@proxy.test:3128", "has no scheme, as in http://"),
        ("http://guest:p@ss@proxy.test:3128/path", "has a path"),
        ("https://guest:p@ss@proxy.test", "its scheme is not supported"),
    ],
)
def test_unusable_option_is_refused_clearly(world: World, proxy: str, says: str) -> None:
    refused = ScriptClient(FACES["c"], app_key="pk_test", ws_host=world.edge, proxy=proxy)
    refused.process.wait()
    assert (refused.created["status"], refused.created["field"]) == ("BIRD_ERR_VALUE", "proxy")
    assert says in refused.created["message"]
    assert "p@ss" not in json.dumps(refused.created)


def test_unusable_variable_is_named_at_create(world: World) -> None:
    program = ["env", "https_proxy=https://guest:p@ss@proxy.test", *FACES["c"]]
    refused = ScriptClient(program, app_key="pk_test", ws_host=world.edge)
    assert refused.created["status"] == "BIRD_ERR_VALUE"
    assert refused.created["field"] == "https_proxy"
    assert "p@ss" not in json.dumps(refused.created)
    refused.process.wait()
    for options in ({"proxy": ""}, {"ws_host": "localhost:1", "allow_insecure": "1"}):
        taken = ScriptClient(program, **{"app_key": "pk_test", "ws_host": world.edge, **options})
        assert taken.created["status"] == "BIRD_OK"
        taken.finish()


# What the program is told

Proxy = Callable[[World], AbstractContextManager[str]]


def url(of: Callable[[World], str]) -> Proxy:
    @contextmanager
    def proxy(world: World) -> Iterator[str]:
        yield of(world)

    return proxy


@contextmanager
def unreachable(_: World) -> Iterator[str]:
    with refusing_port() as port:
        yield f"http://127.0.0.1:{port}"


def answers(response: bytes) -> Proxy:
    @contextmanager
    def proxy(_: World) -> Iterator[str]:
        def act(connection: Connection) -> None:
            connection.read_request()
            connection.send(response)
            connection.close()

        with Misbehaving(act) as server:
            yield f"http://{IN_URL}@{server.host}"

    return proxy


def first_bytes(scheme: str, response: bytes | None) -> Proxy:
    """Answers whatever comes first; None: not at all."""

    @contextmanager
    def proxy(_: World) -> Iterator[str]:
        def act(connection: Connection) -> None:
            connection.read_byte()
            if response is not None:
                connection.send(response)
                connection.close()

        with Misbehaving(act) as server:
            yield f"{scheme}://{server.host}"

    return proxy


def socks(reply: int = 0, credentials: tuple[str, str] | None = None, given: str = "") -> Proxy:
    @contextmanager
    def proxy(_: World) -> Iterator[str]:
        with SocksProxy(reply, credentials) as server:
            yield f"socks5h://{given}{server.host}"

    return proxy


@dataclass(frozen=True)
class Case:
    what: str
    status: str
    field: str
    fact: str
    proxy: Proxy
    edge: str | None = None
    ca: str = "right"


BROKEN, TIMEOUT = "BIRD_ERR_PROXY", "BIRD_ERR_TIMEOUT"
PROXY = "proxy"

CASES = [
    Case("nothing listens where the proxy should be", BROKEN, PROXY, "could not be reached", unreachable),
    Case(
        "the proxy's name does not exist",
        BROKEN,
        "resolve",
        "The proxy proxy.test could not be resolved",
        url(lambda _: "http://proxy.test"),
    ),
    Case(
        "it wants credentials",
        BROKEN,
        PROXY,
        "wants a user and a password (HTTP 407)",
        url(lambda world: f"http://{world.closed.host}"),
    ),
    Case(
        "it wants others",
        BROKEN,
        PROXY,
        "does not accept the user or the password (HTTP 407)",
        answers(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
    ),
    Case(
        "it offers other ways of authenticating only",
        BROKEN,
        PROXY,
        "offers only Digest, Negotiate, NTLM authentication, and this library supports only Basic (HTTP 407)",
        answers(
            b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Negotiate\r\n"
            b"Proxy-Authenticate: NTLM\r\nProxy-Authenticate: Digest realm=x, nonce=y\r\nContent-Length: 0\r\n\r\n"
        ),
    ),
    Case(
        "it offers Basic too, and wants others",
        BROKEN,
        PROXY,
        "does not accept the user or the password (HTTP 407)",
        answers(
            b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Negotiate\r\n"
            b"Proxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"
        ),
    ),
    Case(
        "the same, as tinyproxy says it",
        BROKEN,
        PROXY,
        "does not accept the user or the password (HTTP 401)",
        url(lambda world: f"http://{WRONG}@{world.closed.host}"),
    ),
    Case(
        "it does not allow the edge",
        BROKEN,
        PROXY,
        "(HTTP 403)",
        url(lambda world: f"http://{PLAIN_IN_URL}@{world.strict.host}"),
    ),
    Case(
        "it sends an interim answer to CONNECT first, such as 100",
        BROKEN,
        PROXY,
        "an interim answer (HTTP 100)",
        answers(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection established\r\n\r\n"),
    ),
    Case("it cannot reach the edge", BROKEN, PROXY, "(HTTP 502)", answers(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")),
    Case("the edge did not answer it", BROKEN, PROXY, "(HTTP 504)", answers(b"HTTP/1.1 504 Gateway Timeout\r\n\r\n")),
    Case("it does not answer", TIMEOUT, PROXY, "at this step: proxy", first_bytes("http", None)),
    Case("it ends the connection without an answer", BROKEN, PROXY, "broke the connection", first_bytes("http", b"")),
    Case("it answers with something else", BROKEN, PROXY, "broke the connection", answers(b"SSH-2.0-x\r\n\r\n")),
    Case("SOCKS: it has a failure", BROKEN, PROXY, "reports a failure of its own", socks(1)),
    Case("SOCKS: it does not allow the edge", BROKEN, PROXY, "does not allow this connection", socks(2)),
    Case("SOCKS: it cannot reach the network", BROKEN, PROXY, "cannot reach the server's network", socks(3)),
    Case("SOCKS: it cannot reach the edge", BROKEN, PROXY, "cannot reach the server, or does not know", socks(4)),
    Case("SOCKS: the edge refused it", BROKEN, PROXY, "was refused by the server", socks(5)),
    Case("SOCKS: the edge did not answer it", BROKEN, PROXY, "did not reach the server in time", socks(6)),
    Case("SOCKS: it does not connect at all", BROKEN, PROXY, "does not support connections", socks(7)),
    Case("SOCKS: it does not know this kind of address", BROKEN, PROXY, "does not support this kind", socks(8)),
    Case("SOCKS: it gives another reply", BROKEN, PROXY, "a reply that SOCKS does not define", socks(9)),
    Case(
        "SOCKS: it wants credentials",
        BROKEN,
        PROXY,
        "wants a user and a password",
        socks(credentials=(USER, PASSWORD)),
    ),
    Case(
        "SOCKS: it wants others",
        BROKEN,
        PROXY,
        "does not accept the user or the password",
        socks(credentials=(USER, PASSWORD), given=f"{WRONG}@"),
    ),
    Case("SOCKS: it is no SOCKS5 proxy", BROKEN, PROXY, "does not speak SOCKS5", first_bytes("socks5h", b"HTTP/1.1")),
    Case("SOCKS: it ends the connection", BROKEN, PROXY, "ended the connection", first_bytes("socks5h", b"")),
    Case("SOCKS: it does not answer", TIMEOUT, PROXY, "at this step: proxy", first_bytes("socks5h", None)),
    Case(
        "the edge behind it has a certificate of another CA",
        "BIRD_ERR_TLS",
        "tls",
        "is not signed by a trusted CA",
        url(lambda world: f"http://{PLAIN_IN_URL}@{world.closed.host}"),
        ca="other",
    ),
    Case("the same behind a SOCKS proxy", "BIRD_ERR_TLS", "tls", "is not signed by a trusted CA", socks(), ca="other"),
    Case(
        "it ends the connection that it has made",
        "BIRD_ERR_TLS",
        "tls",
        "the connection ended during the TLS handshake",
        answers(b"HTTP/1.1 200 Connection established\r\n\r\n"),
    ),
    Case(
        "the edge behind it refuses the upgrade",
        "BIRD_ERR_UPGRADE",
        "upgrade",
        "403",
        url(lambda world: f"http://{world.open.host}"),
        edge="refusing",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_program_is_told(world: World, names: NameServer, connect: Start, case: Case) -> None:
    with ExitStack() as stack:
        options: dict[str, str] = {"proxy": stack.enter_context(case.proxy(world))}
        if case.ca == "other":
            options["ca_file"] = str(world.other_ca.file)
        if case.edge:
            refusing = stack.enter_context(refusing_edge())
            front = stack.enter_context(
                TlsFront(world.ca.issue("refusing", "DNS:localhost").server_context(), refusing.server.port)
            )
            options["ws_host"] = f"localhost:{front.port}"
        client = connect(connect_timeout_ms=1000 if case.status == TIMEOUT else 15_000, **options)
        if case.field == "resolve":
            names.next().fail(EAI_NONAME)
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == (case.status, case.field), error
        assert case.fact in error["message"]
        if case.status == "BIRD_ERR_TLS":
            assert f"through the proxy {options['proxy'].rpartition('@')[2].rpartition('/')[2]}: " in error["message"]
        told = re.search(r"HTTP (?:status )?(\d+)", error["message"])
        assert error["http_status"] == (int(told[1]) if told else 0)
        assert client.wait_for_state("unavailable")["reason"] == case.status
        for secret in SECRETS:
            assert secret not in json.dumps(client.all("error") + client.all("state"), ensure_ascii=False)


def refusing_edge() -> Misbehaving:
    def act(connection: Connection) -> None:
        connection.read_request()
        connection.respond(403)

    return Misbehaving(act)


@pytest.mark.parametrize("case", [case for case in CASES if case.status == BROKEN], ids=lambda case: case.what)
def test_authorizer_is_told(
    world: World, names: NameServer, command_edge: CommandEdge, connect: Start, case: Case
) -> None:
    with case.proxy(world) as proxy:
        client = connect(
            ws_host=command_edge.host, allow_insecure=1, proxy=proxy, auth_endpoint=f"https://{world.edge}/auth"
        )
        client.do("subscribe", "private-a", 0)
        if case.field == "resolve":
            for _ in range(4):  # the first and three more
                names.next().fail(EAI_NONAME)
        error = client.wait_for("subscription_error")
        assert (error["error"], error["will_retry"]) == ("BIRD_ERR_AUTH", 1)
        assert error["field"] == case.field
        assert case.fact in error["message"]
        for secret in SECRETS:
            assert secret not in json.dumps(error, ensure_ascii=False)


def test_documentation_has_the_cases() -> None:
    section = (ROOT / "docs/network.md").read_text().split("\n## Proxies\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| (.*?) +\| `(BIRD_\w+)` +\| `(\w+)` +\| (.*?) +\|$", section, re.MULTILINE)
    assert documented == [(case.what, case.status, case.field, case.fact) for case in CASES]
