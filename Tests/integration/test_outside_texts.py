"""What others write, in every place where they can, through every sink where it can end up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer

SECRET = "Hunter2"
URL = f"https://{SECRET}:{SECRET}@elsewhere.test/login?token={SECRET}#{SECRET}"
# A new line that looks like an entry, a terminal's command, and what turns the direction of the rest around.
HOSTILE = "seen\r\n2026-01-01T00:00:00.000Z forged\x1b[31m\x85\u2028\u2029\u202e\u2066\u200f\u061c\x9bdone"
UNFIT = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F)}
UNFIT |= {chr(code) for code in (*range(0x2028, 0x202F), *range(0x2066, 0x2070))}
# What arrives as it was sent: names and payloads are the program's.
EXACT = {"data", "event", "channel"}


def upgrade(answer: str) -> Callable[[Connection], None]:
    def act(connection: Connection) -> None:
        connection.read_request()
        connection.send(answer.encode())
        connection.close()

    return act


def session(act: Callable[[Connection], None]) -> Callable[[Connection], None]:
    def establish(connection: Connection) -> None:
        connection.establish()
        act(connection)

    return establish


def says_error(connection: Connection) -> None:
    data = json.dumps({"code": 4302, "message": HOSTILE, "channel": "orders"})
    connection.send_text({"event": "bird:error", "data": data})


def denies(connection: Connection) -> None:
    connection.read_frame()
    data = json.dumps({"type": "AuthError", "error": HOSTILE, "status": 401})
    connection.send_text({"event": "bird:subscription_error", "channel": "orders", "data": data})


EDGES: dict[str, tuple[Callable[[Connection], None], str]] = {
    "Location of an upgrade": (upgrade(f"HTTP/1.1 302 Found\r\nLocation: {URL}\r\nContent-Length: 0\r\n\r\n"), "error"),
    "Location that is hostile": (
        upgrade("HTTP/1.1 302 Found\r\nLocation: /\u202e\x1b[31m\x85\r\nContent-Length: 0\r\n\r\n"),
        "error",
    ),
    "words of a refusal": (upgrade(f"HTTP/1.1 403 No\r\n\r\n<title>{HOSTILE}</title>"), "error"),
    "reason of a refusal": (session(lambda connection: connection.send_close(4000, HOSTILE[:60])), "error"),
    "reason of a close": (session(lambda connection: connection.send_close(1011, HOSTILE[:60])), "connecting_in"),
    "error of an edge": (session(says_error), "error"),
    "subscription_error of an edge": (session(denies), "subscription_error"),
}


def check(client: ScriptClient, log: Path) -> None:
    """Nothing secret anywhere, and one line that reads in one direction wherever people read."""
    dump = client.do("dump")["dump"]
    texts = [
        value
        for record in client.everything()
        for key, value in record.items()
        if isinstance(value, str) and key not in EXACT
    ]
    lines = log.read_text().split("\n")
    assert any("seen" in text or "elsewhere" in text or "HTTP status" in text or "HTTP 3" in text for text in texts)
    for text in [*texts, *lines]:
        assert not UNFIT & set(text), repr(text)
        assert not text.startswith("2026-01-01"), text
    assert SECRET not in dump + "".join(texts) + "".join(lines)
    assert not UNFIT & set(dump.replace("\n", ""))
    # The dump is JSON, whose escapes must not bring back what was replaced.
    for mistake in json.loads(dump)["errors"]:
        assert not UNFIT & set(mistake["message"])
    for change in json.loads(dump)["changes"]:
        assert not UNFIT & set(change["reason_text"])


def options(log: Path) -> dict[str, str]:
    return {"log_level": "verbose", "log_file": str(log), "log_file_level": "verbose", "log_console": "verbose"}


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("where", EDGES)
def test_texts_of_an_edge(server: ScriptedServer, connect: StartClient, tmp_path: Path, where: str) -> None:
    act, record = EDGES[where]
    log = tmp_path / "log"
    client = connect(server, **options(log), backoff_base_ms=60_000, backoff_max_ms=60_000)
    client.do("subscribe", "orders", 1)
    act(server.accept())
    client.wait_for(record)
    client.call("close", 0)  # the log is written; nobody answers the close
    check(client, log)


AUTHORIZERS: dict[str, tuple[int, str, dict[str, str]]] = {
    "Location": (302, "", {"Location": URL}),
    "page": (403, f"<title>{HOSTILE}</title>", {}),
    "text": (403, f"seen\u202e{HOSTILE}", {}),
    "JSON": (403, json.dumps({"message": HOSTILE}), {}),
    "page in place of JSON": (200, f"<title>{HOSTILE}</title>", {}),
    "encoding": (200, "x", {"Content_Encoding": "seen\x9b\x1b[31m"}),
}


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("where", AUTHORIZERS)
@pytest.mark.parametrize("kind", ["channel", "member"])
def test_texts_of_an_authorizer(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient, tmp_path: Path, where: str, kind: str
) -> None:
    status, body, headers = AUTHORIZERS[where]
    log = tmp_path / "log"
    url = f"http://{auth.host}/seen?token={SECRET}"
    client = connect(server, **options(log), auth_endpoint=url, member_auth_endpoint=url)
    server.accept().establish()
    client.wait_for_state("connected")
    if kind == "channel":
        client.do("subscribe", "private-a", 1)
    else:
        client.do("signin", 1, 0)
    post = auth.accept()
    post.read_post()
    post.respond(status, body, **headers)
    client.wait_for("completion", tag=1)
    client.call("close", 0)  # the log is written; nobody answers the close
    check(client, log)
