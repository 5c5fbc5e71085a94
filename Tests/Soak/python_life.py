"""The soak of the Python package: clients do what programs do, at random but from a seed, and what they see is checked.

It obeys the same lines on standard input as the program in C (main.c), and ends with it.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import json
import logging
import math
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from names import APP_KEY, NAMES

from bird_realtime import BirdRealtime, BirdRealtimeError, Channel, Event, StateChange, SubscriptionSucceeded

PHASE_DEADLINE_S = 240.0
BASELINE_DEADLINE_S = 30.0
AMBIGUOUS_S = 10.0
WORKERS = 2
CLIENTS_EACH_S = 40  # how often one of them does something

_seed = 0
counters: Counter[str] = Counter(connects=0, events=0)


def fail(text: str) -> None:
    sys.stderr.write(f"soak: Python: seed {_seed}: {text}\n")
    sys.stderr.flush()
    os._exit(1)


def ignore(event: object) -> None:
    """A handler that has nothing to do."""


@dataclass
class View:
    """What is known of one channel of one life."""

    is_open: bool = False
    is_continuous: bool = False
    last: int = -1
    successes: int = 0
    left_s: float = -math.inf


@dataclass
class Life:
    """One client and what its handlers have seen. Handlers keep it alive, so that a forgotten one shows as growth."""

    client: BirdRealtime
    views: dict[str, View] = field(default_factory=lambda: {name: View() for name in NAMES})
    wanted: dict[str, int] = field(default_factory=dict)
    edge_error_s: float = -math.inf

    def on_event(self, event: Event) -> None:
        counters["events"] += 1
        channel = event.channel
        if event.name != "tick":
            return
        view = self.views[channel.name]
        number, length = event.data["n"], event.data["l"]
        if event.data["p"] != chr(ord("a") + number % 26) * length:
            fail(f"{channel.name}: event {number} has wrong data")
        if not view.is_open:
            fail(f"{channel.name}: event {number} came while it was not subscribed")
        is_first_of_cache = "cache-" in channel.name and not view.is_continuous and number == view.last
        is_again = number <= view.last and not is_first_of_cache
        if is_again or (view.is_continuous and number > view.last + 1):
            if not self._is_ambiguous(view):
                fail(f"{channel.name}: event {number} came after {view.last}, continuous: {view.is_continuous}")
            counters["ambiguous"] += 1
        view.is_continuous, view.last = True, number

    def on_error(self, error: object) -> None:
        self.edge_error_s = time.monotonic()

    def _is_ambiguous(self, view: View) -> bool:
        """See witness.c."""
        return time.monotonic() - min(view.left_s, self.edge_error_s) < AMBIGUOUS_S

    def on_success(self, event: SubscriptionSucceeded) -> None:
        view = self.views[event.channel.name]
        view.is_open, view.is_continuous = True, False
        view.successes += 1

    def on_state(self, change: StateChange) -> None:
        if change.current != "connected":
            for view in self.views.values():
                view.is_open = False
            if change.previous == "connected":
                counters["losses_python"] += 1
        else:
            counters["connects"] += 1


class Slot:
    """A place for one client after the other."""

    def __init__(self, index: int, seed: int, options: argparse.Namespace) -> None:
        self.index = index
        self.chance = random.Random(seed << 16 | index)
        self._options = options
        self.life: Life | None = None

    def begin(self) -> Life:
        chance, options = self.chance, self._options
        is_tls = chance.random() < 0.2
        client = BirdRealtime(
            APP_KEY,
            ws_host=options.tls if is_tls else chance.choice((options.plain, options.named)),
            address="127.0.0.1" if is_tls else None,
            allow_insecure=True,
            ca_file=options.ca_file,
            auth_endpoint=options.auth,
            member_auth_endpoint=options.member_auth,
            auth_headers={"Authorization": f"Bearer m_{self.index}"},
            header_provider=(lambda endpoint: {"X-Soak": "1"}) if chance.random() < 0.3 else None,
            may_reconnect=(lambda attempt, cause: chance.random() < 0.8) if chance.random() < 0.2 else None,
            auto_connect=False,
            backoff_base_ms=chance.randrange(20, 300),
            backoff_max_ms=1000,
            flap_guard=False,
            connect_timeout_ms=3000,
            auth_timeout_ms=2000,
            answer_timeout_ms=3000,
            message_timeout_ms=3000,
            activity_timeout_ms=chance.randrange(1000, 3000),
            pong_timeout_ms=chance.randrange(1000, 2000),
        )
        counters["created"] += 1
        life = self.life = Life(client)
        client.bind_global(life.on_event)
        client.bind("bird:subscription_succeeded", life.on_success)
        for told in ("bird:subscription_error", "bird:decryption_error"):
            client.bind(told, ignore)
        client.connection.bind("error", life.on_error)
        client.connection.bind("signin_error", ignore)
        client.connection.bind("state_change", life.on_state)
        client.connect()
        return life

    def end(self) -> bool:
        life, self.life = self.life, None
        if life is not None:
            life.client.close()
            counters["destroyed"] += 1
        return True

    def _any_channel(self, life: Life) -> Channel | None:
        channels = list(life.client.channels.values())
        return self.chance.choice(channels) if channels else None

    def act(self) -> bool:
        counters["actions"] += 1
        if self.life is None:
            self.begin()
            return False
        life, chance = self.life, self.chance
        channel = self._any_channel(life)
        what = chance.randrange(100)
        try:
            if what < 35:
                life.client.subscribe(chance.choice(NAMES))
            elif what < 50 and channel is not None:
                life.views[channel.name].left_s = time.monotonic()
                channel.unsubscribe()
            elif what < 60 and channel is not None:
                channel.trigger("client-note", {"text": "hello"})
            elif what < 70 and channel is not None:
                channel.bind("client-note", ignore)
                if chance.random() < 0.5:
                    channel.unbind("client-note")
            elif what < 75:
                life.client.statistics()
                life.client.dump()
            elif what < 80:
                life.client.signin(timeout=0.05)
            elif what < 84:
                life.client.disconnect()
                life.client.connect()
            elif what < 88:
                life.client.retry_now()
            elif what < 91:
                life.client.network_hint(chance.choice(("up", "down", "resumed")))
            elif what < 94:
                self.end()
        except BirdRealtimeError:
            pass  # not connected, not subscribed, not in time, refused
        return False

    def settle(self) -> bool:
        life = self.life or self.begin()
        client = life.client
        if client.connection.state in ("initialized", "disconnected", "failed"):
            client.connect()
        elif client.connection.state == "unavailable":
            client.retry_now()
        is_settled = client.connection.state == "connected" and client.statistics().queue_records == 0
        for name, channel in client.channels.items():
            if channel.state == "failed":
                client.subscribe(name)
            is_settled = is_settled and channel.state == "subscribed"
        life.wanted = {name: view.successes for name, view in life.views.items()}
        return is_settled

    def has_marks(self, marks: dict[str, int]) -> bool:
        life = self.life
        assert life is not None
        return all(
            life.views[name].last >= marks[name] or life.views[name].successes != life.wanted[name]
            for name in life.client.channels
        )

    def strip(self) -> bool:
        assert self.life is not None
        client = self.life.client
        for channel in client.channels.values():
            channel.unsubscribe()
        return client.connection.state == "connected" and client.statistics().channels == 0


class Workers:
    """Threads with slots of their own, and the phase that they are in."""

    def __init__(self, slots: list[Slot]) -> None:
        self._slots = slots
        self._threads: list[threading.Thread] = []
        self._is_living = False

    def live(self) -> None:
        self._is_living = True
        for number in range(WORKERS):
            thread = threading.Thread(target=self._live, args=[self._slots[number::WORKERS], number])
            thread.start()
            self._threads.append(thread)

    def rest(self) -> None:
        self._is_living = False
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _live(self, slots: list[Slot], number: int) -> None:
        chance = random.Random(_seed * 31 + number)
        try:
            while self._is_living and slots:
                chance.choice(slots).act()
                time.sleep(chance.uniform(0, 2 / CLIENTS_EACH_S))
        except BaseException as error:
            fail(f"{type(error).__name__}: {error}")

    def get_there(self, what: str, is_there: Callable[[Slot], bool]) -> None:
        end = time.monotonic() + PHASE_DEADLINE_S
        while True:
            missing = [slot for slot in self._slots if not is_there(slot)]
            if not missing:
                return
            if time.monotonic() > end:
                life = missing[0].life
                fail(f"{what} is not reached: {life and life.client.dump()} {life and life.views}")
            time.sleep(0.02)


class _Heap(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def count_files() -> int:
    return len(os.listdir("/proc/self/fd")) - 1  # without the one that reads the directory


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def figures(when: str) -> None:
    counted = ctypes.CDLL(None)  # heap.c is preloaded
    counted.heap_blocks.restype = counted.heap_bytes.restype = ctypes.c_longlong
    counted.mallinfo2.restype = _Heap
    gc.collect()
    counted.malloc_trim(0)  # see figures.c
    heap = counted.mallinfo2()
    with open("/proc/self/statm", encoding="ascii") as file:
        resident_pages = int(file.read().split()[1])
    values = {
        "when": when,
        "resident_bytes": resident_pages * os.sysconf("SC_PAGESIZE"),
        "heap_blocks": counted.heap_blocks(),
        "heap_bytes": counted.heap_bytes(),
        "heap_free_bytes": heap.fordblks,
        "objects": len(gc.get_objects()),
        "blocks": sys.getallocatedblocks(),
        "files": count_files(),
        "threads": count_threads(),
        "cpu_ms": int(time.process_time() * 1000),
        **counters,
    }
    print(json.dumps(values), flush=True)


def await_baseline(threads: int, files: int) -> None:
    end = time.monotonic() + BASELINE_DEADLINE_S
    while (count_threads(), count_files()) != (threads, files):
        if time.monotonic() > end:
            fail(
                f"after the last close there are {count_threads()} threads in place of {threads}, and "
                f"{count_files()} open files in place of {files}"
            )
        time.sleep(0.01)


def main() -> None:
    global _seed
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    for name in ("--plain", "--named", "--tls", "--ca-file", "--auth", "--member-auth"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    # Answers that come too late are the point here.
    logging.getLogger("bird_realtime").setLevel(logging.CRITICAL)
    _seed = options.seed
    slots = [Slot(index, options.seed, options) for index in range(options.clients)]
    workers = Workers(slots)
    threads, files = count_threads(), count_files()
    for line in sys.stdin:
        command, *words = line.split()
        if command == "figures":
            figures(command)
            continue
        workers.rest()
        if command == "live":
            workers.live()
        elif command == "settle":
            workers.get_there("settled", Slot.settle)
            figures("settled")
        elif command == "marks":
            marks = dict(zip(words[::2], map(int, words[1::2]), strict=True))
            workers.get_there("marked", functools.partial(Slot.has_marks, marks=marks))
            figures("marked")
        elif command == "strip":
            workers.get_there("stripped", Slot.strip)
            figures("stripped")
        elif command == "destroy":
            workers.get_there("destroyed", Slot.end)
            await_baseline(threads, files)
            figures("destroyed")
        else:
            fail(f"there is no command {command}")
    workers.rest()


if __name__ == "__main__":
    main()
