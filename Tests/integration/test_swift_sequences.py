"""Sequences of events of the Swift face, against the local edge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from program import Program

from bird_realtime.testing import App, EdgeConfig, EdgeServer

HELD_EVENTS_MAX = 256  # with the sequence itself

Run = Callable[..., Program]


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    with EdgeServer(EdgeConfig(app=App(), members={"m_7": None})) as running:
        yield running


@pytest.fixture
def run(edge: EdgeServer, run_swift: Run) -> Run:
    return lambda *options: run_swift("swift-script", edge.app_key, edge.ws_host, *options)


def open_stream(script: Program, name: str) -> None:
    script.write(f"stream {name}")
    script.wait_for(f"open {re.escape(name)}")


def test_each_event_comes_once_and_in_order(edge: EdgeServer, run: Run) -> None:
    script = run()
    open_stream(script, "orders")
    open_stream(script, "*")
    edge.wait_for_subscription("orders")
    count = 1_000
    for number in range(count):
        edge.publish("tick", ["orders"], number)
    taken: dict[str, list[int]] = {"orders": [], "*": []}
    for name in taken:
        script.write(f"take {name} {count}")
    for _ in range(2 * count):
        line = script.wait_for(r"took (orders|\*) orders tick (\d+)")
        taken[line[1]].append(int(line[2]))
    assert taken == {"orders": list(range(count)), "*": list(range(count))}


def test_one_that_is_not_read_makes_reading_pause_and_loses_nothing(edge: EdgeServer, run: Run) -> None:
    script = run("queue_records_max=100")
    open_stream(script, "orders")
    edge.wait_for_subscription("orders")
    count = 3_000
    for number in range(count):
        edge.publish("tick", ["orders"], number)

    def has_paused() -> bool:
        script.write("statistics")
        paused = script.wait_for(r"pauses (\d+) waiting (\d+) .*")
        return int(paused[1]) > 0 and int(paused[2]) >= 100

    edge.wait_for(has_paused, what="the client to pause")
    script.write(f"take orders {count}")
    for number in range(count):
        assert script.wait_for(r"took orders orders tick (\d+)")[1] == str(number)


def test_the_overflow_policy_decides_what_an_unread_one_loses(edge: EdgeServer, run: Run) -> None:
    script = run("queue_records_max=100", "overflow=drop-oldest")
    open_stream(script, "orders")
    edge.wait_for_subscription("orders")
    count = 1_000
    for number in range(count):
        edge.publish("tick", ["orders"], number)

    def counts() -> tuple[int, int]:
        script.write("statistics")
        found = script.wait_for(r"pauses 0 waiting (\d+) dropped (\d+) .*")
        return int(found[1]), int(found[2])

    edge.wait_for(lambda: counts()[1] >= count - HELD_EVENTS_MAX - 101, what="the client to drop what is too much")
    script.write(f"take orders {count}")
    edge.publish("end", ["orders"], 0)
    taken = []
    while (line := script.wait_for(r"took orders orders (tick|end) (\d+)"))[1] == "tick":
        taken.append(int(line[2]))
    assert taken[:HELD_EVENTS_MAX] == list(range(HELD_EVENTS_MAX))
    assert taken == sorted(taken)
    assert len(taken) + counts()[1] == count


def test_it_ends_with_its_channel_and_with_its_client(edge: EdgeServer, run: Run) -> None:
    script = run()
    for name in ("orders", "news", "*"):
        open_stream(script, name)
        script.write(f"take {name} 10")
    edge.wait_for_subscription("news")
    script.write("unsubscribe orders")
    script.wait_for("end orders")
    open_stream(script, "weather")
    edge.wait_for_subscription("weather")
    edge.publish("tick", ["weather"], 2)
    script.wait_for(r"took \* weather tick 2")
    script.write("close")
    assert {script.wait_for(r"end (news|\*)")[1] for _ in range(2)} == {"news", "*"}
    script.write("take weather 10")
    script.wait_for("took weather weather tick 2")  # what was delivered before the end comes before it
    script.wait_for("end weather")


def test_a_released_client_ends_it(edge: EdgeServer, run: Run) -> None:
    script = run()
    open_stream(script, "orders")
    script.write("take orders 1")
    edge.wait_for_subscription("orders")
    script.write("release")
    script.wait_for("end orders")
    edge.wait_for_connections(0)


def test_it_throws_why_a_subscription_is_denied(edge: EdgeServer, run: Run) -> None:
    script = run("authorizer=1")
    open_stream(script, "private-ledger")
    script.write("take private-ledger 1")
    script.wait_for(r"asked private-ledger [\d.]+")
    script.write("refuse private-ledger never")
    script.wait_for("threw private-ledger -30 .*never.*")  # BIRD_ERR_DENIED
    script.write("take private-ledger 1")
    script.wait_for("end private-ledger")  # an error is thrown once
    open_stream(script, "#bad")
    script.write("take #bad 1")
    script.wait_for("threw #bad -7 .*channel name.*")  # BIRD_ERR_NAME


def test_it_throws_why_the_edge_refused_the_connection(edge: EdgeServer, run: Run) -> None:
    script = run()
    for name in ("orders", "*"):
        open_stream(script, name)
        script.write(f"take {name} 1")
    edge.wait_for_subscription("orders")
    edge.close_connections(4009, "signed in elsewhere")
    assert {script.wait_for(r"threw (\S+) -32 .*signed in elsewhere.*")[1] for _ in range(2)} == {"orders", "*"}
    open_stream(script, "orders")  # of a client that has failed already
    script.write("take orders 1")
    script.wait_for("threw orders -32 .*")
    edge.wait_for_connections(0)
    script.write("connect")
    edge.wait_for_subscription("orders")
    open_stream(script, "orders")
    script.write("take orders 1")
    edge.publish("tick", ["orders"], 1)
    script.wait_for("took orders orders tick 1")


def test_a_cancelled_task_reads_no_more_and_loses_nothing(edge: EdgeServer, run: Run) -> None:
    script = run()
    open_stream(script, "orders")
    edge.wait_for_subscription("orders")
    script.write("take orders 10")
    edge.publish("tick", ["orders"], 1)
    script.wait_for("took orders orders tick 1")
    script.write("cancel orders")
    script.wait_for("end orders")
    open_stream(script, "*")
    script.write("take * 1")
    edge.publish("tick", ["orders"], 2)
    script.wait_for(r"took \* orders tick 2")
    script.write("take orders 1 cancelled")  # although there is an event
    script.wait_for("end orders")
    script.write("take orders 1")
    script.wait_for("took orders orders tick 2")
    script.write("drop *")
    # One that nobody holds holds nothing up.
    script.write("drop orders")
    script.write("subscribe orders")
    script.write("state")
    script.wait_for("is connected .*")
    for number in range(2 * HELD_EVENTS_MAX):
        edge.publish("tock", ["orders"], number)
    for number in range(2 * HELD_EVENTS_MAX):
        script.wait_for(f"orders tock {number}")


def test_a_task_that_holds_its_own_signin_up_is_told_so(edge: EdgeServer, run: Run) -> None:
    script = run(f"member_auth={edge.member_auth_endpoint}")
    open_stream(script, "orders")
    edge.wait_for_subscription("orders")
    for number in range(2 * HELD_EVENTS_MAX):
        edge.publish("tick", ["orders"], number)
    script.write(f"take orders {2 * HELD_EVENTS_MAX} signin")
    script.wait_for("took orders orders tick 0")
    script.wait_for("no signin .*take its events first.*")
    script.wait_for(f"took orders orders tick {2 * HELD_EVENTS_MAX - 1}")
    # With room it is answered.
    edge.publish("tick", ["orders"], 0)
    script.write("take orders 1 signin")
    script.wait_for("took orders .*")
    script.write("signin")
    script.wait_for("signin m_7 .*")
