"""From a name to an address that answers: with a name service that does what the test likes, and dead addresses.

`CASES` is also the table of docs/network.md, section Names and addresses.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import Authority, Certificate
from command_edge import CommandEdge
from conftest import FACES, QUICK_BACKOFF
from name_server import EAI_AGAIN, EAI_NONAME, NameServer
from paths import ROOT
from script_client import ScriptClient
from scripted_server import DEADLINE_S, Connection, ScriptedServer, refusing_port
from tls_front import TlsFront

AT_ONCE_S = 10.0  # on a busy machine; what must not be waited for takes DEADLINE_S
RESOLVER_THREADS_MAX = 2
WAITING_NAMES_MAX = 1024

Start = Callable[..., ScriptClient]


@pytest.fixture
def names(tmp_path: Path) -> Iterator[NameServer]:
    with NameServer(tmp_path) as server:
        yield server


@dataclass(frozen=True)
class Trust:
    """A name other than that of the own machine is looked up, and wants TLS."""

    ca: Path
    certificate: Certificate


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    ca = Authority(tmp_path_factory.mktemp("names") / "ca")
    return Trust(ca.file, ca.issue("edge", "DNS:edge.test,DNS:auth.test,IP:127.0.0.1,IP:::1"))


def accepted(server: ScriptedServer) -> Connection:
    """Whoever has come; OSError if nobody has."""
    sock, _ = server.listener.accept()
    assert server.tls
    return Connection(server.tls.wrap_socket(sock, server_side=True))


def server_at(trust: Trust, address: str = "127.0.0.1", port: int = 0) -> ScriptedServer:
    return ScriptedServer(trust.certificate.server_context(), address=address, port=port)


@pytest.fixture
def server(trust: Trust) -> Iterator[ScriptedServer]:
    with server_at(trust) as running:
        yield running


@pytest.fixture
def start(names: NameServer, trust: Trust) -> Iterator[Start]:
    """Clients whose names are looked up at the scripted name service."""
    with ExitStack() as stack:

        def begin(host: str, **options: str | int) -> ScriptClient:
            settings = {"app_key": "pk_test", "ws_host": host, "ca_file": str(trust.ca), **QUICK_BACKOFF, **options}
            client = ScriptClient([*names.prefix, *FACES["c"]], **settings)
            stack.callback(client.finish)
            assert client.created["status"] == "BIRD_OK", client.created
            return client

        yield begin


@pytest.fixture
def connect(start: Start) -> Start:
    def begin(host: str, **options: str | int) -> ScriptClient:
        client = start(host, **options)
        client.do("connect")
        return client

    return begin


def threads(client: ScriptClient, name: str) -> list[int]:
    """The ids of the client's threads of this name."""
    found = []
    for task in Path(f"/proc/{client.process.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it may end meanwhile
            if (task / "comm").read_text().strip() == name:
                found.append(int(task.name))
    return found


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def wait_for_no_resolver(client: ScriptClient, names: NameServer) -> None:
    """What is still asked, as for look-ups that have taken long, is asked in vain."""

    def is_so() -> bool:
        if asked := names.next_within(0):
            asked.fail(EAI_AGAIN)
        return not threads(client, "bird-resolver")

    wait_until(is_so, "a resolver thread did not end")


@contextmanager
def silent(address: str, port: int) -> Iterator[None]:
    """Nobody answers at this address: its listener's queue is full, so the kernel drops what asks for a connection."""
    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        stack.enter_context(socket.create_server((address, port), family=family, backlog=0))
        while True:
            filler = stack.enter_context(socket.socket(family))
            filler.settimeout(0.2)
            try:
                filler.connect((address, port))
            except TimeoutError:
                break
        yield


# A look-up that hangs


@pytest.mark.parametrize("ending", ["destroy", "disconnect", "close 10000"])
def test_end_does_not_wait_for_a_look_up(connect: Start, names: NameServer, ending: str) -> None:
    client = connect("edge.test:1")
    question = names.next()
    begun = time.monotonic()
    client.do(*ending.split())
    assert time.monotonic() - begun < AT_ONCE_S
    if ending == "destroy":
        # The thread that is stuck is all that is left, and it ends by itself.
        wait_until(lambda: not threads(client, "bird-reactor"), "the reactor did not end")
        assert threads(client, "bird-resolver") == [question.thread]
        question.answer("127.0.0.1")
        wait_for_no_resolver(client, names)
    # Else the process ends while the thread is stuck.


def test_answer_for_nobody_does_nothing(start: Start, names: NameServer, server: ScriptedServer) -> None:
    client = start(f"edge.test:{server.port}")
    client.do("connect")
    question = names.next()
    client.do("disconnect")
    client.wait_for_state("disconnected")
    question.answer("127.0.0.1")
    wait_for_no_resolver(client, names)
    assert server.is_left_alone_for(0.2)
    client.do("connect")
    names.next().answer("127.0.0.1")
    server.accept().establish()
    client.wait_for_state("connected")


def test_only_resolver_threads_ask(connect: Start, names: NameServer, server: ScriptedServer) -> None:
    client = connect(f"edge.test:{server.port}")
    question = names.next()
    wait_until(lambda: question.thread in threads(client, "bird-resolver"), "another thread asks")
    question.answer("127.0.0.1")
    server.accept().establish()
    client.wait_for_state("connected")
    wait_for_no_resolver(client, names)
    assert names.count == 1


@pytest.mark.parametrize("options", [{"ws_host": "127.0.0.1"}, {"ws_host": "edge.test", "address": "127.0.0.1"}])
def test_address_needs_no_look_up(
    connect: Start, names: NameServer, server: ScriptedServer, options: dict[str, str]
) -> None:
    client = connect(f"{options.pop('ws_host')}:{server.port}", **options)
    server.accept().establish()
    client.wait_for_state("connected")
    assert names.count == 0


def test_equal_look_ups_share_one(start: Start, names: NameServer, trust: Trust, command_edge: CommandEdge) -> None:
    client = start("edge.test:1")
    with TlsFront(trust.certificate.server_context(), command_edge.server.port) as front:
        client.do("crowd", 100, f"edge.test:{front.port}")
        for _ in range(100):
            client.wait_for_state("connecting")
        names.next().answer("127.0.0.1")
        for _ in range(100):
            client.wait_for_state("connected")
        assert names.whole == ["edge.test"]
        client.do("destroy")


def test_two_threads_at_most(start: Start, names: NameServer, command_edge: CommandEdge) -> None:
    client = start(command_edge.host, allow_insecure=1, backoff_base_ms=60_000, backoff_max_ms=60_000)
    client.do("crowd", 50, "n#.test:1")
    hanging = [names.next(), names.next()]
    # Both hang; who needs no look-up does not notice.
    client.do("connect")
    client.wait_for_state("connected")
    assert len(threads(client, "bird-resolver")) == RESOLVER_THREADS_MAX
    for _ in range(48):
        hanging.pop(0).fail(EAI_NONAME)
        hanging.append(names.next())
        assert len(threads(client, "bird-resolver")) <= RESOLVER_THREADS_MAX
    for question in hanging:
        question.fail(EAI_NONAME)
    for _ in range(50):
        assert client.wait_for("error")["error"] == "BIRD_ERR_RESOLVE"
    assert names.open_max == RESOLVER_THREADS_MAX
    wait_for_no_resolver(client, names)


def test_waiting_names_are_bounded(start: Start, names: NameServer) -> None:
    client = start("edge.test:1", backoff_base_ms=60_000, backoff_max_ms=60_000, connect_timeout_ms=60_000)
    client.do("crowd", RESOLVER_THREADS_MAX, "running#.test:1")
    running = [names.next() for _ in range(RESOLVER_THREADS_MAX)]
    client.do("crowd", WAITING_NAMES_MAX + 3, "waiting#.test:1")
    for _ in range(3):
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == ("BIRD_ERR_RESOLVE", "resolve")
        assert f"{WAITING_NAMES_MAX} names are waiting already" in error["message"]
    client.do("destroy")
    # What nobody waits for any more is not looked up.
    for question in running:
        question.fail(EAI_AGAIN)
    wait_for_no_resolver(client, names)
    assert names.count == RESOLVER_THREADS_MAX


def test_dead_name_service_comes_back(start: Start, names: NameServer) -> None:
    with ScriptedServer() as server:
        client = start("edge.test:1", connect_timeout_ms=400)
        client.do("crowd", 6, f"n#.test:{server.port}")
        dead = [names.next(), names.next()]
        for _ in range(12):  # two rounds of attempts, whether their look-up hangs or waits
            error = client.wait_for("connecting_in")
            assert error["reason"] == "BIRD_ERR_TIMEOUT"
        assert {line["field"] for line in client.all("error")} == {"resolve"}
        assert names.count == RESOLVER_THREADS_MAX
        for question in dead:
            question.fail(EAI_AGAIN)
        missing = {f"n{number}.test".encode() for number in range(6)}
        deadline = time.monotonic() + DEADLINE_S
        server.listener.settimeout(0.01)
        while missing:
            assert time.monotonic() < deadline, missing
            asked = names.next_within(0.01)
            if asked:
                asked.answer("127.0.0.1")
            try:
                sock, _ = server.listener.accept()
            except TimeoutError:
                continue
            with sock:
                hello = sock.recv(4096)  # the name is in it
            missing = {name for name in missing if name not in hello}


def test_changed_answer_is_used(connect: Start, names: NameServer, trust: Trust) -> None:
    with server_at(trust) as old, server_at(trust, "127.0.0.2", old.port) as new:
        client = connect(f"edge.test:{old.port}")
        names.next().answer("127.0.0.1")
        connection = old.accept()
        connection.establish()
        client.wait_for_state("connected")
        connection.close()
        names.next().answer("127.0.0.2")
        new.accept().establish()
        client.wait_for_state("connected")


def test_name_of_an_authorizer(connect: Start, names: NameServer, server: ScriptedServer, trust: Trust) -> None:
    with server_at(trust) as auth:
        endpoint = f"https://auth.test:{auth.port}/auth"
        client = connect(server.host, auth_endpoint=endpoint, auth_timeout_ms=400)
        connection = server.accept()
        connection.establish()
        client.do("subscribe", "private-a", 0)
        hanging = names.next()
        # The look-up hangs for all attempts; the deadline of each counts.
        error = client.wait_for("subscription_error")
        assert (error["error"], error["will_retry"]) == ("BIRD_ERR_AUTH", 1)
        assert f"at {endpoint} failed: no answer within 400 ms. It was at this step: resolve." in error["message"]
        assert names.count == 1
        hanging.answer("127.0.0.1")
        # Asked again when the channel is tried again, and once more if an answer comes too late, on a busy machine.
        while not connection.has_input(0.01):
            if (question := names.next_within(0.01)) is not None:
                assert question.name == "auth.test"
                question.answer("127.0.0.1")
            with suppress(OSError):
                auth.listener.settimeout(0.01)
                request = accepted(auth)
                request.read_post()
                request.respond(200, '{"auth": "key:signature"}')
        connection.join("private-a", auth="key:signature")
        client.wait_for("subscribed")


# A name server that answers for one family only


def test_answer_for_ipv4_is_enough(connect: Start, names: NameServer, server: ScriptedServer) -> None:
    """The look-up for IPv4 and IPv6 hangs for want of the latter, as with a name server that never answers for it."""
    client = connect(f"edge.test:{server.port}")
    hanging = names.next()
    assert hanging.family == socket.AF_UNSPEC
    begun = time.monotonic()
    hurried = names.next()
    assert (hurried.name, hurried.family) == ("edge.test", socket.AF_INET)
    hurried.answer("127.0.0.1")
    connection = server.accept()
    assert time.monotonic() - begun < AT_ONCE_S
    connection.establish()
    client.wait_for_state("connected")
    # The next attempt has the answer at once, and whatever name comes next is asked for IPv4 first.
    connection.close()
    server.accept().establish()
    assert names.count == 2
    client.do("crowd", 1, f"auth.test:{server.port}")
    first = names.next()
    assert (first.name, first.family) == ("auth.test", socket.AF_INET)
    first.answer("127.0.0.1")
    server.accept().establish()
    assert names.count == 3
    hanging.answer("127.0.0.1")
    wait_for_no_resolver(client, names)


def test_name_without_ipv4_is_found(connect: Start, names: NameServer, trust: Trust) -> None:
    """The look-up for IPv4 has no answer; the one for both families goes on."""
    with server_at(trust, "::1") as server:
        client = connect(f"edge.test:{server.port}")
        whole = names.next()
        hurried = names.next()
        assert hurried.family == socket.AF_INET
        hurried.fail(EAI_NONAME)
        whole.answer("::1")
        server.accept().establish()
        client.wait_for_state("connected")


def test_names_come_before_second_look_ups(start: Start, names: NameServer) -> None:
    """Two names hang: a thread that becomes free takes a name that waits, not one more look-up of a name that hangs."""
    client = start("edge.test:1", backoff_base_ms=60_000, backoff_max_ms=60_000)
    client.do("crowd", 2, "hanging#.test:1")
    hanging = [names.next(), names.next()]
    client.do("crowd", 1, "waiting.test:1")
    assert names.next_within(1.0) is None  # longer than the grace
    hanging.pop(0).fail(EAI_NONAME)
    waiting = names.next()
    assert (waiting.name, waiting.family) == ("waiting.test", socket.AF_UNSPEC)
    waiting.fail(EAI_NONAME)
    hanging.pop().fail(EAI_NONAME)
    wait_for_no_resolver(client, names)


# The own machine


@pytest.mark.parametrize("host", ["localhost", "edge.localhost"])
def test_localhost_is_this_machine(connect: Start, names: NameServer, server: ScriptedServer, host: str) -> None:
    """Nobody is asked: a name server could say anything."""
    client = connect(f"{host}:{server.port}", tls_verify_name="edge.test")
    server.accept().establish()
    client.wait_for_state("connected")
    assert names.count == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_plaintext_to_localhost(connect: Start, names: NameServer, address: str) -> None:
    with ScriptedServer(address=address) as server, ScriptedServer(address=address) as auth:
        endpoint = f"http://localhost:{auth.port}/auth"
        client = connect(f"localhost:{server.port}", allow_insecure=1, auth_endpoint=endpoint)
        connection = server.accept()
        connection.establish()
        client.do("subscribe", "private-a", 0)
        post = auth.accept()
        post.read_post()
        post.respond(200, '{"auth": "key:signature"}')
        connection.join("private-a", auth="key:signature")
        client.wait_for("subscribed")
        assert names.count == 0


@pytest.mark.parametrize("address", ["192.0.2.1", "128.0.0.1", "2001:db8::1", "::ffff:127.0.0.1"])
def test_plaintext_needs_a_loopback_address(address: str) -> None:
    client = ScriptClient(FACES["c"], app_key="pk_test", ws_host="localhost:1", allow_insecure=1, address=address)
    client.finish()
    assert (client.created["status"], client.created["field"]) == ("BIRD_ERR_VALUE", "address")
    assert "must be a loopback address for plaintext" in client.created["message"]


# Several addresses


def test_second_address_after_a_refusal(connect: Start, names: NameServer, server: ScriptedServer) -> None:
    client = connect(f"edge.test:{server.port}")
    names.next().answer("127.0.0.2", "127.0.0.1")
    server.accept().establish()
    client.wait_for_state("connected")


@pytest.mark.parametrize(
    ("first", "timeout_s", "within"),
    [("127.0.0.2", 3.0, 0.95), ("::1", 10.0, 0.45)],
    ids=["same family", "IPv6 before IPv4"],
)
def test_second_address_after_silence(
    connect: Start, names: NameServer, server: ScriptedServer, first: str, timeout_s: float, within: float
) -> None:
    """Half of the deadline for the first of its family; 200 ms before the other family is tried as well."""
    with silent(first, server.port):
        client = connect(f"edge.test:{server.port}", connect_timeout_ms=int(timeout_s * 1000))
        names.next().answer(first, "127.0.0.1")
        begun = time.monotonic()
        server.accept().establish()
        assert time.monotonic() - begun < timeout_s * within
        client.wait_for_state("connected")
        assert len(client.all("state", current="connecting")) == 1


def test_third_address_after_two_that_are_silent(connect: Start, names: NameServer, server: ScriptedServer) -> None:
    with silent("127.0.0.2", server.port), silent("127.0.0.3", server.port):
        client = connect(f"edge.test:{server.port}", connect_timeout_ms=3000)
        names.next().answer("127.0.0.2", "127.0.0.3", "127.0.0.1")
        server.accept().establish()
        client.wait_for_state("connected")
        assert len(client.all("state", current="connecting")) == 1


def test_ipv6(connect: Start, names: NameServer, trust: Trust) -> None:
    with server_at(trust, "::1") as server:
        for options in ({"host": server.host}, {"host": f"edge.test:{server.port}", "address": "::1"}):
            client = connect(**options)
            connection = server.accept()
            connection.establish()
            assert f"\r\nHost: {options['host']}\r\n".encode() in connection.request
            client.wait_for_state("connected")
        client = connect(f"edge.test:{server.port}")
        names.next().answer("::1")
        server.accept().establish()
        client.wait_for_state("connected")
        assert names.count == 1


# What the program is told


@dataclass(frozen=True)
class Case:
    what: str
    status: str
    field: str
    fact: str
    answer: int | tuple[str, ...] | None


CASES = [
    Case(
        "the name does not exist",
        "BIRD_ERR_RESOLVE",
        "resolve",
        "could not be resolved: Name or service not known",
        EAI_NONAME,
    ),
    Case(
        "the name server has a failure, or does not answer and the system has given up",
        "BIRD_ERR_RESOLVE",
        "resolve",
        "could not be resolved: Temporary failure in name resolution",
        EAI_AGAIN,
    ),
    Case("the look-up has not ended at the deadline", "BIRD_ERR_TIMEOUT", "resolve", "at this step: resolve", None),
    Case("the one address refuses", "BIRD_ERR_CONNECT", "connect", "No connection to", ("127.0.0.1",)),
    Case(
        "every address refuses",
        "BIRD_ERR_CONNECT",
        "connect",
        "the last of 3 addresses tried",
        ("127.0.0.1", "127.0.0.2", "::1"),
    ),
    Case("no address has answered at the deadline", "BIRD_ERR_TIMEOUT", "connect", "connect", ("127.0.0.3",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_program_is_told(connect: Start, names: NameServer, case: Case) -> None:
    with refusing_port() as port, silent("127.0.0.3", port):
        client = connect(f"edge.test:{port}", connect_timeout_ms=1000)
        question = names.next()
        if isinstance(case.answer, int):
            question.fail(case.answer)
        elif case.answer:
            question.answer(*case.answer)
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == (case.status, case.field), error
        assert case.fact in error["message"]
        assert error["retriable"] == 1
        assert client.wait_for_state("unavailable")["reason"] == case.status


def test_documentation_has_the_cases() -> None:
    section = (ROOT / "docs/network.md").read_text().split("\n## Names and addresses\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| (.*?) +\| `(BIRD_\w+)` +\| `(\w+)` +\| (.*?) +\|$", section, re.MULTILINE)
    assert documented == [(case.what, case.status, case.field, case.fact) for case in CASES]
