"""The edge of the soak: publishes numbered events, and lets its clients down in every way that an edge can.

It prints a line of JSON when it listens, and obeys lines on standard input: "faults" and "heal", "load" and "rest",
which answers with the last number of each channel, and "counts", which answers with how often each fault was. It ends
with its input.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

from nacl.secret import SecretBox
from names import APP_KEY, APP_SECRET, MASTER_KEY, NAMES, payload

from bird_realtime.edge.config import App, EdgeConfig
from bird_realtime.edge.controls import Controls
from bird_realtime.edge.names import Kind, kind_of
from bird_realtime.edge.server import Edge
from bird_realtime.edge.signing import shared_secret

TICK_S = 0.02
LARGE_BYTES = 20_000
LAG_EVENTS_MAX = 20  # what is not published in time is left out: this machine may have other work

CLOSE_CODES = (1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1013, 1015, 3000, 4100, 4200, 4300, 4999)
CLOSE_CODES_FOR_GOOD = (4000, 4003, 4004, 4009, 4050, 4099)  # after which clients do not come back by themselves

NONSENSE = (
    "",
    "nonsense",
    "[1, 2]",
    "{",
    '{"event": 7}',
    '{"event": "tick"}',
    '{"event": "tick", "channel": "nobody-is-here", "data": "1"}',
    # No other error: it would be taken for the answer to a subscribe, and then there is no telling whose a success is.
    '{"event": "bird:error", "data": {"code": 4301, "message": "soak"}}',
    '{"event": "bird_internal:subscription_succeeded", "channel": "nobody-is-here", "data": "{}"}',
    '{"event": "bird:ping", "data": "{}"}',
    '{"event": "bird:pong", "data": "{}"}',
    '{"event": "\\ud800"}',
    "[" * 600,
)


class Load:
    """Events on every channel, each with its number."""

    def __init__(self, controls: Controls, chance: random.Random, rate: float) -> None:
        self._controls = controls
        self._chance = chance
        self._rate = rate
        self._last = dict.fromkeys(NAMES, 0)
        self._is_on = False
        self.published = 0

    async def run(self) -> None:
        due = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            due = max(due, now - LAG_EVENTS_MAX / self._rate)
            while due < now:
                due += 1 / self._rate
                if self._is_on:
                    self._publish(self._chance.choice(NAMES))

    def start(self) -> None:
        self._is_on = True

    def rest(self) -> dict[str, int]:
        """One more event on each channel, and none after it: the numbers of these."""
        self._is_on = False
        for name in NAMES:
            self._publish(name)
        return dict(self._last)

    def _publish(self, name: str) -> None:
        self._last[name] += 1
        self.published += 1
        length = LARGE_BYTES if self._chance.random() < 0.005 else self._chance.randrange(200)
        text = payload(self._last[name], length)
        if kind_of(name) is Kind.ENCRYPTED:
            text = _sealed(name, text)
        self._controls.publish("tick", [name], data_json=text)


def _sealed(name: str, text: str) -> str:
    box = SecretBox(base64.b64decode(shared_secret(name, MASTER_KEY.encode())))
    sealed = box.encrypt(text.encode())
    return json.dumps(
        {
            "nonce": base64.b64encode(sealed.nonce).decode(),
            "ciphertext": base64.b64encode(sealed.ciphertext).decode(),
        }
    )


class Mischief:
    """One fault after the other while it is on."""

    def __init__(self, controls: Controls, chance: random.Random, rate: float) -> None:
        self._controls = controls
        self._chance = chance
        self._rate = rate
        self._is_on = False
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        faults: list[Callable[[], None]] = [self._close, self._close, self._drop, self._say, self._withhold, self._http]
        while True:
            await asyncio.sleep(self._chance.expovariate(self._rate))
            if self._is_on:
                self._chance.choice(faults)()

    def start(self) -> None:
        self._is_on = True

    def heal(self) -> None:
        self._is_on = False
        self._controls.clear_faults()

    def _anybody(self) -> str | None:
        connections = list(self._controls.edge.hub.connections)
        return self._chance.choice(connections) if connections else None

    def _close(self) -> None:
        connection = self._anybody()
        if connection is not None:
            codes = CLOSE_CODES if self._chance.random() < 0.9 else CLOSE_CODES_FOR_GOOD
            self._controls.close_connections(self._chance.choice(codes), "soak", connection_id=connection)
            self.counts["close code"] += 1

    def _drop(self) -> None:
        connection = self._anybody()
        if connection is not None:
            self._controls.drop_connections(connection, reset=self._chance.random() < 0.5)
            self.counts["drop by the edge"] += 1

    def _say(self) -> None:
        connection = self._anybody()
        if connection is None:
            return
        if self._chance.random() < 0.1:
            self._controls.inject_binary(b"\x00\xff", connection)
        else:
            self._controls.inject_text(self._chance.choice(NONSENSE), connection)
        self.counts["nonsense"] += 1

    def _withhold(self) -> None:
        answer = self._chance.choice(("handshake", "pong", "subscribe", "signin"))
        if self._chance.random() < 0.5:
            self._controls.withhold(answer, times=1)
        else:
            self._controls.delay(answer, self._chance.uniform(0.05, 2.0), times=1)
        self.counts["answer late or never"] += 1

    def _http(self) -> None:
        target = self._chance.choice(("upgrade", "auth", "member_auth"))
        status = self._chance.choice((302, 403, 404, 429, 500, 503))
        how = self._chance.randrange(3 if target == "upgrade" else 4)
        if how == 0:
            self._controls.fail_http(target, hang=True, times=1)
        elif how == 1:
            self._controls.fail_http(target, status=status, retry_after="1", body="<html>", times=1)
        elif how == 2:
            self._controls.fail_http(target, delay_s=self._chance.uniform(0.05, 2.0), times=1)
        else:
            self._controls.fail_http(target, wrong_signature=True, times=1)
        self.counts[f"HTTP {target}"] += 1


async def run(seed: int, events_per_s: float, faults_per_s: float) -> None:
    config = EdgeConfig(
        app=App(client_events=True, connection_counting=True, connection_count_events=True, watchlist_events=True),
        app_key=APP_KEY,
        app_secret=APP_SECRET,
        encryption_master_key=MASTER_KEY.encode(),
        watchlists={f"m_{number}": [f"m_{number + 1}"] for number in range(0, 100, 4)},
        presence_limit_members=1000,
        client_events_per_s=5,
        allow_hosts=["edge.soak.test"],  # soak.py says so; it is on loopback
    )
    edge = Edge(config)
    await edge.start()
    controls = Controls(edge)
    load = Load(controls, random.Random(seed), events_per_s)
    mischief = Mischief(controls, random.Random(seed + 1), faults_per_s)
    tasks = [asyncio.ensure_future(load.run()), asyncio.ensure_future(mischief.run())]
    keys = {"app-key": APP_KEY, "app-secret": APP_SECRET, "master-key": MASTER_KEY}
    answer({"port": edge.config.port, **keys})
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).strip():
        for task in tasks:
            if task.done():
                task.result()
        if line == b"faults":
            mischief.start()
        elif line == b"heal":
            mischief.heal()
        elif line == b"load":
            load.start()
        elif line == b"rest":
            answer(load.rest())
        elif line == b"counts":
            answer({**mischief.counts, "published": load.published})
        else:
            raise ValueError(f"there is no command {line!r}")
    await edge.stop()


def answer(values: object) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--events-per-s", type=float, required=True)
    parser.add_argument("--faults-per-s", type=float, required=True)
    options = parser.parse_args()
    # Clients that leave in the middle of an upgrade are the point here.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    asyncio.run(run(options.seed, options.events_per_s, options.faults_per_s))
