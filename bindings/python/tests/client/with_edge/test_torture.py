"""Several threads make random calls on clients that they share, while the edge misbehaves.

What a thread calls and with which arguments follows from the seed and the number of the thread; the order between
threads is the machine's. TORTURE_SEED and TORTURE_SECONDS repeat a run, or make a longer one; a failure names the seed.
"""

from __future__ import annotations

import faulthandler
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from bird_realtime import BirdRealtime, BirdRealtimeError, CalledInHandler, Event, _abi
from bird_realtime.channel import Channel, PresenceChannel
from bird_realtime.testing import EdgeServer

from .conftest import settings
from .waiting import GENEROUS_S, eventually

SEED = int(os.environ.get("TORTURE_SEED", "1"))
SECONDS = float(os.environ.get("TORTURE_SECONDS", "2"))
THREADS = 3
CLIENTS = 4
NAMES = ("orders", "private-orders", "presence-room", "private-encrypted-vault", "cache-news", "bad name", "")
EVENTS = ("tick", "bird:subscription_succeeded", "bird:member_added", "client-said", "")
STATES = ("connected", "unavailable", "disconnected")
BRIEFLY_S = 0.02


class Torture:
    def __init__(self, edge: EdgeServer) -> None:
        self.edge = edge
        self.is_over = threading.Event()
        self.clients: list[BirdRealtime] = []
        self.made: list[BirdRealtime] = []
        self.failures: list[BaseException] = []
        self.calls = self.handled = 0
        self.lock = threading.Lock()

    # ----------------------------------------------------------------------------------------------- clients ----

    def create(self, chance: random.Random) -> BirdRealtime:
        options: dict[str, Any] = {
            **settings(self.edge, f"m_{chance.randrange(3)}"),
            "thread": chance.random() < 0.7,
            "auto_connect": chance.random() < 0.8,
            "queue_records_max": chance.choice((5, 100, 65_536)),
            "overflow": chance.choice(("pause", "drop-oldest", "drop-newest")),
            "backoff_base_ms": 5,
            "backoff_max_ms": 50,
            "flap_guard": False,
            "connect_timeout_ms": 500,
            "answer_timeout_ms": 200,
            "on_handler_error": lambda error, _: self.fail(error),
        }
        if chance.random() < 0.3:
            del options["auth_endpoint"]
            options["authorizer"] = self.authorize
        if chance.random() < 0.3:
            options["may_reconnect"] = lambda attempt, _: attempt % 3 != 0
        bird = BirdRealtime(self.edge.app_key, **options)
        last: dict[str, int] = {}
        inside = random.Random(chance.random())  # noqa: S311

        def tick(event: Event) -> None:
            self.handled += 1
            number = event.data
            if number <= last.get(event.channel.name, -1):
                self.fail(AssertionError(f"{number} came after {last[event.channel.name]} on {event.channel.name}"))
            last[event.channel.name] = number
            if inside.random() < 0.1:
                self.call(inside, bird, is_handler=True)

        bird.bind("tick", tick)
        with self.lock:
            self.made.append(bird)
        return bird

    def authorize(self, name: str, connection_id: str) -> dict[str, str]:
        if name == "private-orders":
            raise ConnectionError("a backend that is away")
        return {"auth": "key:signature"}

    def fail(self, error: BaseException) -> None:
        # The authorizer's own, and that of a handler whose random call was refused.
        if not isinstance(error, (BirdRealtimeError, ConnectionError)):
            self.failures.append(error)

    # ------------------------------------------------------------------------------------------------- calls ----

    def call(self, chance: random.Random, bird: BirdRealtime, is_handler: bool = False) -> None:
        """One random call. Of errors only the package's own may come, and in a handler a wait must be refused."""
        name, event, draw = chance.choice(NAMES), chance.choice(EVENTS), chance.random()
        calls: tuple[Callable[[], object], ...] = (
            bird.connect,
            lambda: bird.disconnect() if draw < 0.05 else bird.connect(),
            bird.retry_now,
            lambda: bird.network_hint(("up", "down", "resumed", "?")[int(draw * 4)]),
            lambda: bird.configure(pong_timeout_ms=20 + int(draw * 500), reconnect=("jitter", "fixed")[draw < 0.5]),
            lambda: bird.subscribe(name),
            lambda: bird.subscribe(name).bind(event, print),
            lambda: bird.subscribe(name).unbind(event),
            lambda: bird.subscribe(name).bind_global(print),
            lambda: bird.subscribe(name).unbind_global(),
            lambda: bird.subscribe("private-orders").trigger("client-said", [draw]),
            lambda: bird.unsubscribe(name) if draw < 0.3 else bird.channels,
            lambda: self.look_at(bird),
            lambda: bird.bind(event, print).unbind(event, print),
            bird.statistics,
            bird.dump,
            lambda: bird.close(draw * BRIEFLY_S) if draw < 0.02 else bird.member_id,
        )
        waits: tuple[Callable[[], object], ...] = (
            lambda: bird.signin(timeout=draw * BRIEFLY_S),
            lambda: bird.wait_until(STATES[int(draw * 3)], draw * BRIEFLY_S),
            lambda: bird.subscribe("orders").wait_subscribed(draw * BRIEFLY_S),
        )
        waits_now = draw < 0.1
        self.calls += 1
        try:
            chance.choice(waits if waits_now else calls)()
        except CalledInHandler:
            assert is_handler
        except BirdRealtimeError as error:
            if error.status == _abi.BIRD_ERR_HANDLE:
                raise AssertionError("a handle was released while a call used it") from error

    def look_at(self, bird: BirdRealtime) -> None:
        for channel in bird.channels.values():
            assert isinstance(channel, Channel)
            if isinstance(channel, PresenceChannel):
                list(channel.members)
            repr(channel)
        repr(bird.connection.state)

    def torture(self, number: int) -> None:
        chance = random.Random(f"{SEED} {number}")  # noqa: S311
        try:
            while not self.is_over.is_set():
                index = chance.randrange(CLIENTS)
                if chance.random() < 0.01:
                    before, self.clients[index] = self.clients[index], self.create(chance)
                    before.close(BRIEFLY_S)
                self.call(chance, self.clients[index])
        except BaseException as error:
            self.failures.append(error)

    def misbehave(self) -> None:
        chance = random.Random(f"{SEED} edge")  # noqa: S311
        edge, ticks = self.edge, 0
        while not self.is_over.is_set():
            acts: tuple[Callable[[], object], ...] = (
                lambda: edge.drop_connections(reset=chance.random() < 0.5),
                lambda: edge.close_connections(chance.choice((1000, 1011, 4100, 4200, 4009, 4001))),
                lambda: edge.inject_text(chance.choice(("{", "[]", '{"event":"tick"}'))),
                lambda: edge.inject_raw(chance.choice((b"\xff\xff", b"\x81\x05ab"))),
                lambda: edge.withhold(chance.choice(("handshake", "pong", "subscribe", "signin")), times=2),
                lambda: edge.fail_http(chance.choice(("upgrade", "auth", "member_auth")), status=503, times=2),
                lambda: edge.send_to_member("m_1", "note", 1),
            )
            for _ in range(20):
                edge.publish("tick", list(NAMES[:3]), ticks)
                ticks += 1
                time.sleep(0.0005)
            chance.choice(acts)()


def test_random_calls_from_several_threads(edge: EdgeServer) -> None:
    before = set(threading.enumerate())  # those of other tests, which may be ending
    torture = Torture(edge)
    torture.clients = [torture.create(random.Random(f"{SEED} {i} first")) for i in range(CLIENTS)]  # noqa: S311
    threads = [threading.Thread(target=torture.torture, args=[number]) for number in range(THREADS)]
    threads.append(threading.Thread(target=torture.misbehave))
    faulthandler.dump_traceback_later(SECONDS + 2 * GENEROUS_S)
    try:
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        eventually(lambda: torture.calls > 100 and torture.handled > 0, "some calls and events")
        torture.is_over.set()
        for thread in threads:
            thread.join(GENEROUS_S)
            assert not thread.is_alive(), f"seed {SEED}: a thread hangs"
        for bird in torture.made:
            bird.close()
        eventually(lambda: all(bird._native.is_destroyed for bird in torture.made), "the end of every client")
    finally:
        torture.is_over.set()
        faulthandler.cancel_dump_traceback_later()
    handled = torture.handled
    eventually(lambda: not set(threading.enumerate()) - before, "the threads of the clients to end")
    assert not torture.failures, f"seed {SEED}: {torture.failures[0]!r}"
    assert torture.handled == handled, "nothing is delivered after close"
    print(  # noqa: T201 - the figures
        f"seed {SEED}: {torture.calls} calls, {handled} events, {len(torture.made)} clients"
    )
