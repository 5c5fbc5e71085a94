"""Policies, giving up, retrying now and options of a living client."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, GaveUp, InvalidArgument, InvalidState, StateChange
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

Connect = Callable[..., BirdRealtime]

DAY_MS = 86_400_000


def plans_of(bird: BirdRealtime) -> list[StateChange]:
    plans: list[StateChange] = []
    bird.connection.bind("connecting_in", plans.append)
    return plans


def test_a_plan_is_told_and_retried_now(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(reconnect="staged", reconnect_stages=f"1x{DAY_MS}")
    plans = plans_of(bird)
    bird.retry_now()
    edge.drop_connections()
    eventually(lambda: plans, "the plan")
    assert (plans[0].attempt, plans[0].delay, plans[0].policy) == (1, DAY_MS / 1000, "staged")
    bird.retry_now()
    bird.wait_until("connected", GENEROUS_S)
    assert len(plans) == 1


def test_a_living_client_is_configured(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(reconnect="fixed", reconnect_delay_ms=DAY_MS)
    plans = plans_of(bird)
    edge.drop_connections()
    eventually(lambda: plans, "the plan")
    bird.configure(reconnect="staged", reconnect_stages="1x1")
    bird.wait_until("connected", GENEROUS_S)
    assert [plan.policy for plan in plans][:2] == ["fixed", "staged"]
    bird.configure(activity_timeout_ms=20, pong_misses_max=2)
    edge.wait_for_received("bird:ping", 3)
    assert bird.connection.state == "connected"
    with pytest.raises(InvalidState, match="region is fixed") as fixed:
        bird.configure(region="eu1")
    assert fixed.value.field == "region"
    with pytest.raises(InvalidArgument, match=r'stage 2 is "5y9"'):
        bird.configure(reconnect_stages="5x3,5y9")


def test_it_gives_up_when_every_attempt_is_refused(edge: EdgeServer, connect: Connect) -> None:
    asked: list[tuple[int, str]] = []

    def may_reconnect(attempt: int, cause: BirdRealtimeError) -> bool:
        asked.append((attempt, cause.status_name))
        return False

    bird = connect(
        reconnect="fixed", reconnect_delay_ms=5, reconnect_attempts_max=3, may_reconnect=may_reconnect, thread=False
    )
    edge.drop_connections()
    with pytest.raises(GaveUp, match="gave up after 3 attempts: "):
        bird.run_forever()
    assert asked == [(1, "BIRD_ERR_LOST"), (2, "BIRD_ERR_LOST"), (3, "BIRD_ERR_LOST")]
    assert bird.connection.state == "disconnected"
    assert isinstance(bird.connection.error, GaveUp)
    with pytest.raises(GaveUp):
        bird.wait_until("connected", GENEROUS_S)
    bird.wait_until("disconnected", GENEROUS_S)
    with pytest.raises(InvalidState):
        bird.signin()
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)
    assert bird.connection.error is None


def test_a_loop_over_events_ends_when_the_client_gives_up(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(reconnect_attempts_max=1, may_reconnect=lambda attempt, cause: False, backoff_max_ms=10)
    events = bird.subscribe("orders").events()
    edge.drop_connections()
    with pytest.raises(GaveUp):
        for _ in events:
            pass


def test_subscribing_while_connections_come_and_go(edge: EdgeServer, connect: Connect) -> None:
    """THR-03: each connection hears of each channel once, whatever is subscribed meanwhile."""
    bird = connect(flap_guard=False, backoff_base_ms=1, backoff_max_ms=5)
    names = [f"orders-{number}" for number in range(200)]
    is_over = threading.Event()

    def subscribe() -> None:
        for name in names:
            bird.subscribe(name)
            bird.subscribe(name)
            is_over.wait(0.001)

    threads = [threading.Thread(target=subscribe) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        edge.drop_connections()
        is_over.wait(0.02)
    for name in names:
        bird.subscribe(name).wait_subscribed(GENEROUS_S)
    frames = [(entry.connection_id, entry.text) for entry in edge.journal("received") if "bird:subscribe" in entry.text]
    assert len(frames) >= len(names)
    assert len(frames) == len(set(frames))


def test_calls_from_many_threads(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(flap_guard=False)
    orders = bird.subscribe("orders")

    def change() -> None:
        for number in range(60):
            bird.configure(reconnect=("jitter", "fixed", "staged")[number % 3], reconnect_delay_ms=1 + number % 7)
            bird.retry_now()

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        edge.drop_connections()
    for thread in threads:
        thread.join()
    bird.configure(reconnect="fixed", reconnect_delay_ms=1)
    bird.wait_until("connected", GENEROUS_S)
    orders.wait_subscribed(GENEROUS_S)
    edge.wait_for_connections(1)
