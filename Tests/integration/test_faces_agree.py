"""What C and Python say of the same frames: rosters, watchlists, identities and success payloads, at random by a seed.

FACES_SEED repeats a run; a failure names the seed, the round and the frame."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from conftest import FACES
from script_client import Record, ScriptClient
from scripted_server import TEXT, Connection, ScriptedServer, event, frame

SEED = int(os.environ.get("FACES_SEED", "1"))
ROUNDS = 60
ROOM = "presence-room"
SUCCEEDED = "bird:subscription_succeeded"

#: as they stand in a frame; most are ids for one reader or another
IDS = (
    '"a"', '"b"', '"c"', '"A"', '""', '" "', '"1"', '"1e2"', '"1.0"', '"-0"', '"żółw 🐢"', '"e\\u0301"', '"\\u00e9"',
    '"\\u0061"', "1", "2", "1.0", "1e2", "1E2", "100", "-0", "0", "0.10", "12345678901234567890123",
    "12345678901234567890123.0", "1e400", '"a\\u0000b"', "true", "false", "null", "[]", '["a"]', "{}", '{"a":1}',
)  # fmt: skip
INFOS = ("null", "1", "1.50", '"x"', '""', "[]", '[1,{"n":null}]', '{"name":"Noor"}', '{"n":1,"n":2}', "false", "1e400")
#: nobody's roster, list or identity
NONE_AT_ALL = ("", "null", "5", '"text"', "[]", "{}", "text", '{"presence":', '{"presence":5}', '{"presence":{}}')


class Chance(random.Random):
    """Random payloads as JSON texts."""

    def id_(self) -> str:
        return self.choice(IDS)

    def key(self) -> str:
        """An id as the name of a member of an object."""
        id_ = self.id_()
        return id_ if id_.startswith('"') else json.dumps(id_)

    def array(self) -> str:
        return f"[{','.join(self.id_() for _ in range(self.randrange(7)))}]"

    def success(self) -> str:
        if self.random() < 0.15:
            return self.choice(NONE_AT_ALL)
        infos = ",".join(f"{self.key()}:{self.choice(INFOS)}" for _ in range(self.randrange(7)))
        hash_ = f"{{{infos}}}" if self.random() < 0.85 else self.choice(("null", "[]", "5", '"x"'))
        ids = self.array() if self.random() < 0.85 else self.choice(("null", "{}", "5", '"a"'))
        parts = [f'"ids":{ids}'] * (self.random() < 0.8) + [f'"hash":{hash_}'] * (self.random() < 0.9)
        parts += ['"count":99'] * (self.random() < 0.5) + [f'"ids":{self.array()}'] * (self.random() < 0.1)
        self.shuffle(parts)
        return f'{{"presence":{{{",".join(parts)}}}}}'

    def member(self) -> str:
        if self.random() < 0.1:
            return self.choice(NONE_AT_ALL)
        parts = [f'"member_id":{self.id_()}'] * (self.random() < 0.95)
        parts += [f'"member_info":{self.choice(INFOS)}'] * (self.random() < 0.7)
        parts += [f'"member_id":{self.id_()}'] * (self.random() < 0.1)
        self.shuffle(parts)
        return f"{{{','.join(parts)}}}"

    def watchlist(self) -> str:
        if self.random() < 0.1:
            return self.choice(NONE_AT_ALL)
        names = ('"online"', '"offline"', '"away"', '""', "1", "null")
        entries = [
            f'{{"name":{self.choices(names, (8, 8, 1, 1, 1, 1))[0]},"member_ids":{self.array()}}}'
            if self.random() < 0.9
            else self.choice(("null", "[]", "5", '{"name":"online"}', '{"member_ids":["a"]}'))
            for _ in range(self.randrange(5))
        ]
        return f'{{"events":[{",".join(entries)}]}}'


def message(chance: Chance, name: str, data: str, channel: str | None = None) -> bytes:
    """A frame whose data is this JSON text: mostly as a string, sometimes as it is."""
    place = "" if channel is None else f'"channel":"{channel}",'
    try:
        json.loads(data)
        is_json = True
    except ValueError:
        is_json = False
    shown = data if is_json and chance.random() < 0.3 else json.dumps(data)
    return frame(TEXT, f'{{"event":"{name}",{place}"data":{shown}}}'.encode())


class Face:
    """One client and its connection."""

    def __init__(self, stack: ExitStack, name: str, server: ScriptedServer) -> None:
        options: dict[str, str | int] = {"consume": "dispatch"} if name == "c" else {}
        self.client = ScriptClient(
            FACES[name],
            app_key="pk_test",
            ws_host=server.host,
            allow_insecure=1,
            authorizer=1,
            member_authorizer=1,
            answer_timeout_ms=600_000,
            **options,
        )
        stack.callback(self.client.finish)
        self.client.do("connect")
        self.connection: Connection = server.accept()
        self.connection.establish()
        self.client.wait_for_state("connected")
        self.client.do("subscribe", "control", 0)
        self.connection.join("control")
        self.client.wait_for("subscribed", channel="control")
        self._seen = 0
        self._settled = 0

    def wait_for_message(self, name: str) -> None:
        while self.connection.read_frame().json["event"] != name:
            pass

    def settle(self) -> None:
        """Everything that was sent before has been delivered."""
        self._settled += 1
        self.connection.send_text(event("settled", "control", self._settled))
        self.client.wait_for("event", event="settled", data=str(self._settled))

    def news(self) -> list[Record]:
        """What was told since the last time."""
        everything = self.client.everything()
        self._seen, before = len(everything), self._seen
        return everything[before:]


def info(text: str) -> Any:
    return json.loads(text) if text else None


def roster(text: str) -> list[tuple[str, Any]]:
    rows = [row.split("\x1f") for row in text.split("\x1e")[:-1]]
    return [(member_id, info(member_info)) for member_id, member_info in rows]


READ: dict[str, Callable[[Record], Any]] = {
    "subscribed": lambda r: (r["data"], r["member_count"], r["my_id"], roster(r["roster"]), r.get("members_now")),
    "subscription_error": lambda r: (r["data"], r.get("members_now")),
    "member_added": lambda r: (r["member_id"], info(r["data"]), r.get("members_now")),
    "member_removed": lambda r: (r["member_id"], info(r["data"]), r.get("members_now")),
    "bound": lambda r: (r["event"], r["data"], roster(r["roster"])),
    "watchlist": lambda r: (r["event"], json.loads(r["data"])),
    "watched": lambda r: (r["event"], json.loads(r["data"])),
    "signed_in": lambda r: (
        r["member_id"],
        info(r["member_info"]) if "member_info" in r else json.loads(r["data"]).get("member_info"),
    ),
}


def told(records: list[Record], *kinds: str) -> list[tuple[str, Any]]:
    return [(r["record"], READ[r["record"]](r)) for r in records if r["record"] in kinds]


def both(server: ScriptedServer, stack: ExitStack) -> tuple[Face, Face]:
    return Face(stack, "c", server), Face(stack, "python", server)


def test_rosters_and_success_payloads(server: ScriptedServer) -> None:
    chance = Chance(f"rosters {SEED}")
    kinds = ("subscribed", "subscription_error", "member_added", "member_removed", "bound")
    with ExitStack() as stack:
        faces = both(server, stack)
        is_subscribed, members_seen = False, 0
        for number in range(ROUNDS):
            member_data = f'{{"member_id":{chance.id_()}}}'
            frames = [message(chance, "bird_internal:subscription_succeeded", chance.success(), ROOM)]
            for _ in range(chance.randrange(8)):
                change = chance.choice(("added", "removed"))
                frames.append(message(chance, f"bird_internal:member_{change}", chance.member(), ROOM))
            ends = chance.random() < 0.1
            if ends:
                frames.append(message(chance, "bird_internal:subscription_error", '"full"', ROOM))
            answers = []
            for face in faces:
                if not is_subscribed:
                    face.client.do("subscribe", ROOM, 0)
                    request = face.client.wait_for("request", asks="channel")["request"]
                    face.client.do("grant", request, "k:s", member_data)
                    face.wait_for_message("bird:subscribe")
                face.connection.send(b"".join(frames))
                face.settle()
                face.client.do("bind", 0, ROOM, SUCCEEDED)
                face.settle()
                face.client.do("unbind", 0)
                now = face.client.do("roster", ROOM)
                answers.append((told(face.news(), *kinds), roster(now["roster"]), now["my_id"]))
            assert answers[0] == answers[1], f"seed {SEED}, round {number}: {frames}"
            members_seen += len(answers[0][1])
            is_subscribed = not ends
        assert members_seen > ROUNDS / 2, "the payloads have members"


def test_identities_and_watchlists(server: ScriptedServer) -> None:
    chance = Chance(f"watchlists {SEED}")
    kinds = ("watchlist", "watched", "signed_in")
    with ExitStack() as stack:
        faces = both(server, stack)
        signins = 0
        for number in range(ROUNDS):
            data = chance.member()
            frames = [message(chance, "bird:signin_success", json.dumps({"member_data": data}))]
            changes = [
                message(chance, "bird_internal:watchlist_events", chance.watchlist())
                for _ in range(chance.randrange(5))
            ]
            answers = []
            for face in faces:
                face.client.do("signin", number + 1, 1)
                request = face.client.wait_for("request", asks="member")["request"]
                face.client.do("grant", request, "k:s", '{"member_id":"m_7"}')
                face.wait_for_message("bird:signin")
                face.connection.send(frames[0])
                completion = face.client.wait_for("completion", tag=number + 1)
                face.connection.send(b"".join(changes))
                face.settle()
                if number % 10 == 9:
                    face.client.do("watch")
                    face.settle()
                news = face.news()
                answers.append((completion["status"], told(news, *kinds), face.client.do("member")["member_id"]))
                if "member_id" in completion:
                    assert completion["member_id"] == face.client.all("signed_in")[-1]["member_id"]
            assert answers[0] == answers[1], f"seed {SEED}, round {number}: {[*frames, *changes]}"
            signins += answers[0][0] == "BIRD_OK"
        assert signins > ROUNDS / 4, "some identities are good"
