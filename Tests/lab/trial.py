"""One run of a case: an edge, a client of it, the moments at which things break and heal, and what was measured."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import telling
from case import Case
from lab_edge import Fault, LabEdge, Session
from paths import CLIENT_SCRIPT
from script_client import Record, ScriptClient
from scripted_server import ScriptedServer

# A run is over when so many numbers of a connection that works have come.
EVENTS_AFTER = 10
# What never comes is given up so much later than it is right.
PATIENCE_S = 60.0
POLL_S = 0.01


@dataclass(frozen=True)
class Measured:
    told: tuple[str, ...]
    told_s: float | None  # from the fault to the first word about it
    back_s: float | None  # from the healing, or from the fault that heals itself, to the first event after it
    lost: int  # of the numbers that were sent to a client that was reached
    received: int
    away: int  # numbers that were published while the client was not reached
    note: str


class LabClient(ScriptClient):
    """Every record has the time at which the program was told, by `time.monotonic`."""

    def decode(self, text: str) -> Record:
        line = super().decode(text)
        return {**line, "at_s": line["at_us"] / 1e6} if "record" in line else line


class Trial:
    """What a case works with. `start` comes first; `fault` and `heal` note the time, the first of each counts."""

    def __init__(self, case: Case, directory: Path, slack_s: float) -> None:
        self.directory = directory
        self._slack_s = slack_s  # what may come on top of promised times
        self.stack = ExitStack()
        self.note = ""  # for the table: what else is to be said
        self._case = case
        self._fault_at: float | None = None
        self._heal_at: float | None = None
        self._moments = threading.Condition()

    def start(
        self,
        edge: LabEdge,
        host: str | None = None,
        command: list[str | Path] | None = None,
        *,
        is_broken: bool = False,
        **options: str | int,
    ) -> None:
        """A client of this edge in a process of its own, on its way; `command` stands before its program.

        What is broken already breaks when it connects.
        """
        self.edge = edge
        settings: dict[str, str | int] = {"app_key": "pk_lab", "ws_host": host or edge.host, "consume": "thread"}
        if edge.context is None:
            settings["allow_insecure"] = 1
        self.client = LabClient([*(command or []), CLIENT_SCRIPT], **{**settings, **self._case.options, **options})
        self.stack.callback(self.client.finish)
        assert self.client.created["status"] == "BIRD_OK", self.client.created
        self.client.do("subscribe", edge.channel, 0)
        if is_broken:
            self.fault()
        self.client.do("connect")

    def serve(self, *faults: Fault, activity_timeout_s: int = 120) -> LabEdge:
        """A plaintext edge on this machine, whose first connections meet these faults."""
        # Bound, and never listening: the edge may go and come back.
        reserved = self.stack.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return self.edge_on(
            ScriptedServer(port=reserved.getsockname()[1]), None, *faults, activity_timeout_s=activity_timeout_s
        )

    def edge_on(
        self,
        server: ScriptedServer,
        context: ssl.SSLContext | None,
        *faults: Fault,
        activity_timeout_s: int = 120,
    ) -> LabEdge:
        """The same on a server of the case's, with TLS when there is a context."""
        return self.stack.enter_context(LabEdge(server, context, list(faults), activity_timeout_s, self.fault))

    # Moments

    def fault(self, at_s: float | None = None) -> None:
        """Now, unless it is known better."""
        with self._moments:
            self._fault_at = self._fault_at or at_s or time.monotonic()
            self._moments.notify_all()

    def heal(self) -> None:
        self._heal_at = self._heal_at or time.monotonic()

    def wait_for_fault(self) -> None:
        with self._moments:
            assert self._moments.wait_for(lambda: self._fault_at is not None, PATIENCE_S), "nothing broke"

    def wait_for_service(self) -> None:
        """Some events of the newest connection."""
        self.wait_until(lambda: self._is_served_since(time.monotonic() - 1), "service")

    def wait_until_told(self) -> None:
        """The first word about the fault."""
        self.wait_until(lambda: bool(self._since_fault()), "word of the fault")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._case.lasts_s + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"no {what}; last records: {self.client.everything()[-6:]}"
            time.sleep(POLL_S)

    def order(self, fault: Fault, is_last: bool = True) -> None:
        """Done to the connection that is served now, by the edge between two events; is it the last it does?"""
        self.edge.sessions[-1].order(fault, is_last)

    # Measuring

    def measure(self) -> Measured:
        """After the case has broken and healed everything: waits for service, and for all that is under way."""
        self.wait_for_fault()
        assert self._fault_at is not None
        healed_at = self._heal_at or self._fault_at
        self.wait_until(lambda: self._is_served_since(healed_at), "service")
        self.edge.fall_silent()
        last = self.edge.sessions[-1]
        self.wait_until(lambda: self._events()[-1][0] == last.sent[-1][0], "last event")
        records = self.client.everything()
        telling.check(records, self._slack_s)
        received = [number for number, _ in self._events()]
        assert received == sorted(set(received)), f"not in order, or twice: {received}"
        first = self._served_since(healed_at)[0]
        after = [record for record in records if self._fault_at < record["at_s"] <= first]
        words = telling.told(after)
        return Measured(
            told=words,
            told_s=self._since_fault()[0]["at_s"] - self._fault_at if words else None,
            back_s=first - healed_at,
            lost=len(self._owed(last) - set(received)),
            received=len(received),
            away=received[-1] - received[0] + 1 - len(received),
            note=self.note,
        )

    def _owed(self, last: Session) -> set[int]:
        """The numbers that were sent on a connection that worked: the last one, and before the fault any."""
        assert self._fault_at is not None
        return {
            number
            for session in self.edge.sessions
            for number, at in session.sent
            if session is last or at < self._fault_at
        }

    def _since_fault(self) -> list[Record]:
        return [
            record
            for record in self.client.everything()
            if self._fault_at is not None and record["at_s"] > self._fault_at and telling.words(record)
        ]

    def _events(self) -> list[tuple[int, float]]:
        """Numbers, and when they came."""
        events = self.client.all("event", channel=self.edge.channel, event="tick")
        return [(json.loads(record["data"]), record["at_s"]) for record in events]

    def _served_since(self, moment: float) -> list[float]:
        """When the events of the newest connection came that came after the moment."""
        newest = self.edge.sessions[-1] if self.edge.sessions else None
        if newest is None or newest.is_over or not newest.sent:
            return []
        return [at for number, at in self._events() if number >= newest.sent[0][0] and at > moment]

    def _is_served_since(self, moment: float) -> bool:
        return len(self._served_since(moment)) >= EVENTS_AFTER
