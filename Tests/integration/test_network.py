"""Changes of the network, in network namespaces: what is checked and tried at once, and what means nothing."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from certificates import Authority
from clock import Clock
from conftest import FACES, StartClient
from namespaces import Namespace, connect
from script_client import ScriptClient
from scripted_server import DEADLINE_S, TEXT, Connection, ScriptedServer, event, refusing_port

PING = {"event": "bird:ping"}
PONG = {"event": "bird:pong"}

# Without help from the network there is no further attempt while a test lasts, and no ping.
PATIENT: dict[str, str | int] = {"reconnect": "fixed", "reconnect_delay_ms": 86_400_000, "flap_guard": 0}

NEAR = "192.0.2.1"  # the edge, on the cable
FAR = {"IPv4": "198.51.100.1", "IPv6": "2001:db8:e::1"}  # the edge, behind the default route
GATEWAY = {"IPv4": "192.0.2.1", "IPv6": "2001:db8:1::1"}
DEFAULT = "route add default via 192.0.2.1 dev cable"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


class World:
    """The client's machine: a cable and a radio to the edge's, a default route of each family over the cable."""

    def __init__(self, stack: ExitStack, authority: Authority) -> None:
        self._stack = stack
        self._authority = authority
        self._context = authority.server_context(f"IP:{NEAR}," + ",".join(f"IP:{address}" for address in FAR.values()))
        self.client = stack.enter_context(Namespace())
        self.edge = stack.enter_context(Namespace())
        for interface in ("cable", "radio"):
            connect(self.client, self.edge, interface)
        self.edge.ip(
            "addr add 192.0.2.1/24 dev cable",
            "addr add 2001:db8:1::1/64 dev cable nodad",
            "addr add 203.0.113.1/24 dev radio",
            f"addr add {FAR['IPv4']}/32 dev lo",
            f"addr add {FAR['IPv6']}/128 dev lo nodad",
        )
        self.client.ip(
            "addr add 192.0.2.2/24 dev cable",
            "addr add 2001:db8:1::2/64 dev cable nodad",
            "addr add 203.0.113.2/24 dev radio",
            DEFAULT,
            "route add ::/0 via 2001:db8:1::1 dev cable",
        )

    def serve(self, address: str, port: int = 0) -> ScriptedServer:
        with self.edge.inside():
            return self._stack.enter_context(ScriptedServer(self._context, address=address, port=port))

    def start(self, face: str, server: ScriptedServer, **options: str | int) -> ScriptClient:
        settings: dict[str, str | int] = {
            "app_key": "pk_test",
            "ws_host": server.host,
            "ca_file": str(self._authority.file),
            **PATIENT,
            **options,
        }
        client = ScriptClient(self.client.command(*FACES[face]), **settings)
        self._stack.callback(client.finish)
        assert client.created["status"] == "BIRD_OK", client.created
        client.do("connect")
        return client


@pytest.fixture
def world(authority: Authority) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack, authority)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.01)


def established(world: World, face: str, address: str, **options: str | int) -> tuple[ScriptClient, Connection]:
    server = world.serve(address)
    client = world.start(face, server, **options)
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    return client, connection


class Pongs:
    """Answers pings, and counts them, until the connection ends."""

    def __init__(self, connection: Connection) -> None:
        self.count = 0
        self._connection = connection
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (found := self._connection.read_frame()).opcode == TEXT:
                assert found.json == PING
                self.count += 1
                self._connection.send_text(PONG)


# Lost and found


@pytest.mark.c_only("it takes 5 s, and the other face has the same ways")
def test_connection_without_a_network_is_given_up_within_seconds(world: World, face: str) -> None:
    client, _ = established(world, face, FAR["IPv4"])
    began = time.monotonic()
    world.client.ip("route del default")
    lost = client.wait_for_state("unavailable")
    assert 4.9 < time.monotonic() - began < 20  # not after 150 s
    assert lost["reason"] == "BIRD_ERR_TIMEOUT"


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
def test_default_route_goes_and_comes_back(world: World, face: str, family: str) -> None:
    default = "::/0" if family == "IPv6" else "default"
    client, connection = established(world, face, FAR[family], pong_timeout_ms=300, connect_timeout_ms=2000)
    world.client.ip(f"route del {default}")
    client.wait_for_state("unavailable")
    client.wait_for_state("connecting")  # at once, and in vain
    waiting = client.wait_for_state("unavailable")
    assert waiting["delay_ms"] == 86_400_000
    world.client.ip(f"route add {default} via {GATEWAY[family]} dev cable")
    assert client.wait_for("connecting_in", previous="unavailable")["delay_ms"] < 2_000
    client.wait_for_state("connecting")
    connection.close()
    assert client.statistic("network_changes") == 2


@pytest.mark.c_only("the message is the library's")
def test_attempt_without_a_route_says_so(world: World, face: str) -> None:
    world.client.ip("route del default")
    client = world.start(face, world.serve(FAR["IPv4"]))
    assert "Network is unreachable" in client.wait_for("error")["message"]


@pytest.mark.c_only("it takes 10 s, and the other face has the same ways")
def test_one_way_street_is_found_out(world: World, face: str) -> None:
    """What the edge has sent before it misses its acknowledgements does not end the doubt."""
    client, connection = established(world, face, FAR["IPv4"])
    world.client.ip("route del default")
    connection.send_text(event("tick", "orders", 1))
    lost = client.wait_for_state("unavailable")
    assert lost["reason"] == "BIRD_ERR_TIMEOUT"


@pytest.mark.parametrize("side", ["client", "edge"])
def test_cable_is_cut_and_plugged_in_again(world: World, face: str, side: str) -> None:
    """At the edge's side the client's link loses its carrier; at its own the link is taken down, with its routes."""
    server = world.serve(FAR["IPv4"])
    client = world.start(face, server, pong_timeout_ms=300, connect_timeout_ms=3000)
    client.do("subscribe", "orders", 0)
    first = server.accept()
    first.establish("1.1")
    first.join("orders")
    client.wait_for("subscribed")
    end = world.client if side == "client" else world.edge
    end.ip("link set cable down")
    client.wait_for_state("unavailable")
    while client.wait_for_state("unavailable")["delay_ms"] == 0:
        pass
    # Both ends lose what is bound to a link that is down. The first SYN may be lost before the other end is up again.
    end.ip("link set cable up", *([DEFAULT] if side == "client" else []))
    second = server.accept()
    second.establish("2.2")
    second.join("orders")
    client.wait_for("subscribed", is_resubscribe=1)
    second.send_text(event("tick", "orders", 1))
    client.wait_for("event")


def test_source_address_goes_while_another_interface_has_the_default_route(world: World, face: str) -> None:
    world.client.ip("route del default", "route add default via 203.0.113.1 dev radio")
    server = world.serve(NEAR)
    client = world.start(face, server, pong_timeout_ms=300)
    first = server.accept()
    first.establish("1.1")
    client.wait_for_state("connected")
    assert first.socket.getpeername()[0] == "192.0.2.2"
    world.client.ip("addr del 192.0.2.2/24 dev cable")
    client.wait_for_state("unavailable")
    second = server.accept()  # by the radio
    second.establish("2.2")
    client.wait_for_state("connected")
    assert second.socket.getpeername()[0] == "203.0.113.2"


# Checked, and still there


def test_change_of_the_default_route_is_one_ping(world: World, face: str) -> None:
    client, connection = established(world, face, NEAR)
    world.client.ip("route replace default via 203.0.113.1 dev radio")
    connection.expect(PING)
    connection.send_text(PONG)
    world.client.ip("route del default")
    connection.expect(PING)
    connection.send_text(PONG)
    world.client.ip(DEFAULT)  # nothing to check
    until(lambda: client.statistic("network_changes") == 4)
    assert client.statistic("messages_sent") == 2
    assert client.statistic("connects") == 1


def test_loopback_does_not_care(world: World, face: str) -> None:
    with world.client.inside(), ScriptedServer() as server:
        client = world.start(face, server, allow_insecure=1)
        connection = server.accept()
        connection.establish()
        client.wait_for_state("connected")
        world.client.ip("route replace default via 203.0.113.1 dev radio")
        until(lambda: client.statistic("network_changes") == 1)  # that there is one, not that the other has gone
        assert client.statistic("messages_sent") == 0


def test_other_interfaces_addresses_and_routes_are_nothing(world: World, face: str) -> None:
    client, connection = established(world, face, FAR["IPv4"], pong_timeout_ms=300)
    noise = [
        "link add docker0 type bridge",
        "addr add 172.17.0.1/16 dev docker0",
        "link set docker0 up",
        "link add veth1 type veth peer name veth2",
        "link set veth1 master docker0",
        "link set veth1 up",
        "link set veth2 up",
        "route add 198.18.0.0/15 dev docker0",
        "route add default via 192.0.2.1 dev cable table 100",
        "route add default via 192.0.2.1 dev cable metric 500",
        "route add 2001:db8:ff::/48 dev docker0",
        "addr add 192.0.2.77/24 dev cable",
        "addr del 192.0.2.77/24 dev cable",
        "addr change 192.0.2.2/24 dev cable valid_lft 3600 preferred_lft 3600",
        "link set radio down",
        "link set radio up",
        "route del default metric 500",
        "route flush table 100",
        "link del veth1",
        "link del docker0",
    ]
    for _ in range(5):
        world.client.ip(*noise)
    world.client.ip("route replace default via 192.0.2.9 dev cable")  # a change, told after all that
    client.wait_for("state", current="unavailable")
    assert client.all("state", current="unavailable")[0]["reason"] == "BIRD_ERR_TIMEOUT"
    assert client.statistic("network_changes") == 2  # one went, one came
    connection.close()


def test_flapping_route_means_a_ping_a_second(world: World, face: str) -> None:
    client, connection = established(world, face, NEAR)
    pongs = Pongs(connection)
    began = time.monotonic()
    for _ in range(5):
        world.client.ip(*["route del default", DEFAULT] * 60)
    world.client.ip("route del default")
    until(lambda: pongs.count > 0 and client.statistic("network_changes") > 0)
    before = pongs.count
    until(lambda: pongs.count > before or time.monotonic() - began > 3)  # the last change may have to wait
    lasted = time.monotonic() - began
    assert client.statistic("connects") == 1
    assert client.statistic("attempts") == 1
    assert pongs.count <= lasted + 1
    assert client.statistic("messages_sent") <= lasted + 2


def test_flapping_route_means_an_attempt_a_second(world: World, face: str) -> None:
    client, connection = established(world, face, FAR["IPv4"], pong_timeout_ms=300, connect_timeout_ms=2000)
    world.edge.ip(f"addr del {FAR['IPv4']}/32 dev lo")  # whatever is tried fails
    connection.close()
    world.client.ip("route del default")
    while client.wait_for_state("unavailable")["delay_ms"] == 0:
        pass
    before = client.statistic("attempts")
    began = time.monotonic()
    for _ in range(5):
        world.client.ip(*[DEFAULT, "route del default"] * 60)
    world.client.ip(DEFAULT)
    until(lambda: client.statistic("attempts") > before)
    assert client.statistic("attempts") - before <= time.monotonic() - began + 2


@pytest.mark.c_only("the Python package has no command for many clients")
def test_many_clients_come_back_one_after_the_other(world: World, face: str) -> None:
    server = world.serve(FAR["IPv4"])
    port = server.port
    world.client.ip("route del default")
    client = world.start(face, server)
    client.do("crowd", 24, server.host)
    while client.wait_for_state("unavailable")["delay_ms"] == 0:
        pass
    with world.edge.inside():
        world.client.ip(DEFAULT)
        arrivals = []
        for _ in range(20):  # some may not have been waiting yet
            server.listener.settimeout(DEADLINE_S)
            sock, _ = server.listener.accept()
            arrivals.append(time.monotonic())
            sock.close()
    assert port == server.port
    assert arrivals[-1] - arrivals[0] > 0.2


# What the library cannot hear


@pytest.mark.c_only("a loop of the program's own")
def test_lost_messages_mean_looking_again(world: World, face: str) -> None:
    client, connection = established(world, face, NEAR, consume="host")
    client.do("pause")  # nobody reads what the kernel tells, until it is more than it keeps
    world.client.ip(*["link set radio down", "link set radio up"] * 300, "route del default")
    client.do("resume")
    connection.expect(PING)
    connection.send_text(PONG)


def check_hint_without_watch(client: ScriptClient, connection: Connection, world: World) -> None:
    world.client.ip("route del default")
    client.do("network", 2)
    connection.expect(PING)
    connection.send_text(PONG)
    assert client.statistic("network_changes") == 1


def test_without_the_watch_only_hints_count(world: World, face: str) -> None:
    check_hint_without_watch(*established(world, face, NEAR, network_watch=0), world)


@pytest.mark.c_only("a loop of the program's own")
def test_hints_reach_a_loop_of_the_programs(world: World, face: str) -> None:
    check_hint_without_watch(*established(world, face, NEAR, network_watch=0, consume="host"), world)


def test_hint_that_the_network_is_up_ends_the_wait(server: ScriptedServer, start: StartClient) -> None:
    client = start(server, **PATIENT)
    client.do("connect")
    server.accept().close()
    waiting = client.wait_for_state("unavailable")
    assert waiting["delay_ms"] == 86_400_000
    client.do("network", 2)
    client.do("network", 1)
    assert client.wait_for("connecting_in", previous="unavailable")["delay_ms"] == 0
    second = server.accept()
    second.establish("2.2")
    client.wait_for_state("connected")
    assert client.statistic("network_changes") == 2


def test_hint_asks_the_program_before_the_attempt(server: ScriptedServer, start: StartClient) -> None:
    client = start(server, may_reconnect=1, **PATIENT)
    client.do("connect")
    server.accept().close()
    client.wait_for_state("unavailable")
    client.do("network", 1)
    client.do("proceed", client.wait_for("request", asks="reconnect")["request"], 0)
    server.accept().establish("2.2")
    client.wait_for_state("connected")


def test_hints_are_nothing_to_a_client_without_a_connection(server: ScriptedServer, start: StartClient) -> None:
    client = start(server, **PATIENT)
    client.do("network", 1)
    client.do("connect")
    server.accept().establish()
    client.wait_for_state("connected")
    client.do("disconnect")
    client.wait_for_state("disconnected")
    for hint in (1, 2, 3):
        client.do("network", hint)
    until(lambda: client.statistic("network_changes") == 3)
    assert client.do("state")["state"] == "disconnected"
    assert client.statistic("attempts") == 1


# No file descriptor for the watch


def netlink_sockets(pid: int) -> int:
    inodes = {line.split()[9] for line in Path(f"/proc/{pid}/net/netlink").read_text().splitlines()[1:]}
    links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    return sum(link.startswith("socket:[") and link[8:-1] in inodes for link in links)


@pytest.mark.c_only("what is decided in the engine alone")
def test_watch_begins_when_there_is_a_file_descriptor_for_it(server: ScriptedServer, start: StartClient) -> None:
    client = start(server, log_level="info")
    pid = client.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    free = (number for number in itertools.count() if number not in used)
    *_, fourth = itertools.islice(free, 4)  # three for the reactor and one for the connection
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (fourth + 1, hard))
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    until(lambda: any("go unnoticed" in record["message"] for record in client.all("log", area="network")))
    assert netlink_sockets(pid) == 0
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    connection.send_close(4200)
    server.accept().establish("2.2")
    client.wait_for("state", current="connected", connection_id="2.2")
    until(lambda: netlink_sockets(pid) == 1)


# The machine sleeps


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@contextlib.contextmanager
def suspendable(clock: Clock, face: str, host: str, **options: str | int) -> Iterator[ScriptClient]:
    settings: dict[str, str | int] = {"app_key": "pk_test", "ws_host": host, "allow_insecure": 1, **PATIENT, **options}
    client = ScriptClient([*clock.command, *FACES[face]], **settings)
    try:
        client.do("connect")
        yield client
    finally:
        client.finish()


def check_suspend(clock: Clock, face: str, server: ScriptedServer, **options: str | int) -> None:
    """LIV-08: the time for which the machine slept counts."""
    with suspendable(clock, face, server.host, **options) as client:
        connection = server.accept()
        connection.establish()
        client.wait_for_state("connected")
        clock.suspend(60)  # too short for a ping of its own
        connection.send_text(event("tick", "nobody", 1))  # something that wakes the client
        connection.expect(PING)
        connection.send_text(PONG)
        clock.suspend(3600)
        connection.send_text(event("tick", "nobody", 2))
        connection.expect(PING)
        client.wait_for_state("unavailable")  # for want of an answer, within 5 s
        assert client.statistic("network_changes") == 2


def test_suspend_means_a_check(clock: Clock, server: ScriptedServer, face: str) -> None:
    check_suspend(clock, face, server, pong_timeout_ms=1500)


@pytest.mark.c_only("a loop of the program's own")
def test_suspend_is_noticed_on_a_loop_of_the_programs(clock: Clock, server: ScriptedServer, face: str) -> None:
    check_suspend(clock, face, server, pong_timeout_ms=1500, consume="host")


def test_suspend_ends_the_wait(clock: Clock, face: str) -> None:
    with refusing_port() as port, suspendable(clock, face, f"127.0.0.1:{port}") as client:
        assert client.wait_for_state("unavailable")["delay_ms"] == 86_400_000
        clock.suspend(60)
        client.do("subscribe", "orders", 0)  # something that wakes the client
        client.wait_for_state("connecting")
        assert client.wait_for_state("unavailable")["attempt"] == 2


@pytest.mark.c_only("the library alone reads clocks")
@pytest.mark.parametrize("hours", [12, -12])
def test_wall_clock_does_not_matter(
    clock: Clock, server: ScriptedServer, tmp_path: Path, face: str, hours: int
) -> None:
    """LIV-06: set forward or back, it is no silence and delays nothing."""
    log = tmp_path / "bird.log"
    options: dict[str, str | int] = {"activity_timeout_ms": 1000, "log_file": str(log), "log_file_level": "verbose"}
    with suspendable(clock, face, server.host, **options) as client:
        connection = server.accept()
        connection.establish()
        client.wait_for_state("connected")
        clock.set_wall_clock(hours * 3600)
        began = time.monotonic()
        connection.expect(PING)  # of its own, when it is due
        assert 0.9 < time.monotonic() - began < 20
        connection.send_text(PONG, event("tick", "nobody", 1))
        until(lambda: client.statistic("frames_unroutable") == 1)
        assert len(client.all("state")) == 2
        assert client.statistic("network_changes") == 0
    times = [line[:13] for line in log.read_text().splitlines()]
    assert times[0] != times[-1], "the library has not seen the change"
