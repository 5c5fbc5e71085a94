"""Many clients in one process, and the price of one event."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from paths import HARNESS, PROGRAMS
from program import Program
from scripted_server import DEADLINE_S

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
    command = [str(PROGRAMS / "client_loop"), str(flood_port), "256", "20000", "100000"]
    environment = {**os.environ, "LD_PRELOAD": str(PROGRAMS / "count_alloc.so")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["events"] == 100_000
    assert figures["allocations"] == 0
