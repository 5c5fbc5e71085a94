"""Many clients in one process, and the price of one event."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from paths import HARNESS, PROGRAMS
from program import Program
from scripted_server import DEADLINE_S, PING, PONG, Frame, ScriptedServer, event, frame

from bird_realtime.testing import EdgeServer


def test_a_thousand_clients_share_one_reactor(record_property: Callable[[str, object], None]) -> None:
    with EdgeServer() as edge:
        program = Program([HARNESS, "many_clients_share_one_reactor", edge.ws_host, edge.app_key, "1000"])
        try:
            record_property("figures", program.wait_for(r"ready: (.*)")[1])
            edge.wait_for_subscription("fleet", 1000, timeout_s=DEADLINE_S)
            edge.publish("tick", ["fleet"], 1)
            program.wait_for("received: 1000")
            assert program.wait() == 0
        finally:
            program.close()


@pytest.fixture
def flood_port() -> Iterator[int]:
    with subprocess.Popen([PROGRAMS / "flood_server", "--bytes", "256"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def test_loop_mode_allocates_nothing(flood_port: int) -> None:
    """100 000 events, after 20 000 that warm up."""
    command = [str(PROGRAMS / "client_handler"), "loop", str(flood_port), "256", "20000", "100000"]
    environment = {**os.environ, "LD_PRELOAD": str(PROGRAMS / "count_alloc.so")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["events"] == 100_000
    assert figures["allocations"] == 0


def test_the_pool_serves_two_thousand_clients() -> None:
    """One handler blocks one thread of two for as long as all other clients need for all their events."""
    clients, threads, events = 2000, 2, 5
    with EdgeServer() as edge:
        arguments = [edge.ws_host, edge.app_key, str(clients), str(threads), str(events)]
        program = Program([HARNESS, "pool_serves_many_clients", *arguments])
        try:
            program.wait_for("ready")
            edge.wait_for_subscription("fleet", clients, timeout_s=DEADLINE_S)
            for number in range(events):
                edge.publish("tick", ["fleet"], number)
            program.wait_for("slow")
            program.write("")
            program.wait_for("over")
            assert program.wait() == 0
        finally:
            program.close()


def test_a_slow_handler_of_the_pool_stalls_no_ping(server: ScriptedServer) -> None:
    arguments = [server.host, "pk_test", "2", "2", "1"]
    program = Program([HARNESS, "pool_serves_many_clients", *arguments])
    try:
        connections = []
        for number in range(2):
            connection = server.accept()
            connection.establish(f"{number}.1")
            connection.join("fleet")
            connections.append(connection)
        program.wait_for("ready")
        for connection in connections:
            connection.send_text(event("tick", "fleet", 0))
        program.wait_for("slow")
        for connection in connections:
            connection.send(frame(PING, b"are you there"))
            assert connection.read_frame() == Frame(PONG, b"are you there")
        program.write("")
        program.wait_for("over")
        assert program.wait() == 0
    finally:
        program.close()
