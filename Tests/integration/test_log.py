"""The log's sinks: standard error, files that several processes share, full disks; and that no secret gets there."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_edge import CommandEdge
from conftest import StartClient
from paths import CLIENT_SCRIPT, HARNESS
from script_client import ScriptClient
from scripted_server import CONTINUATION, DEADLINE_S, TEXT, Connection, ScriptedServer, dump, event, frame, succeeded

LINE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\d+)/(\d+) (error|warn|info|verbose) "
    r"(connection|channel|authorization|signin|delivery|network|wire|process): (.+)"
)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.01)


def text_of(file: Path) -> str:
    """Nothing while it is not there: one that rolls has gone for a moment."""
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def lines_of(*files: Path) -> list[re.Match[str]]:
    """Every line of them; each must be whole."""
    found = []
    for file in files:
        text = file.read_text()
        assert text.endswith("\n") or not text, text[-200:]
        for line in text.splitlines():
            match = LINE.fullmatch(line)
            assert match, line
            found.append(match)
    return found


def messages_of(*files: Path) -> list[str]:
    return [line[6] for line in lines_of(*files)]


def family(path: Path) -> list[Path]:
    """The file and its older ones, the newest first."""
    numbered = [(int(file.name[len(path.name) + 1 :]), file) for file in path.parent.glob(f"{path.name}.*")]
    return [path, *(file for _, file in sorted(numbered))]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "bird.log"


Talk = Callable[..., ScriptClient]
#: what writes is in the library, whatever program uses it
library_only = pytest.mark.c_only("the sinks are the library's")


@pytest.fixture
def talk(start: StartClient, server: ScriptedServer) -> Talk:
    """Begins a connected client with these options, subscribed to private-room, on which it can trigger."""
    kept: list[Connection] = []

    def begin(**options: str | int) -> ScriptClient:
        client = start(server, authorizer=1, **options)
        client.do("connect")
        connection = server.accept()
        connection.establish()
        client.do("subscribe", "private-room", 0)
        client.do("grant", client.wait_for("request")["request"], "key:signature")
        connection.join("private-room", auth="key:signature")
        client.wait_for("subscribed")
        kept.append(connection)
        return client

    return begin


def trigger(client: ScriptClient, count: int, name: str = "n") -> None:
    """As many lines in the wire's verbose log."""
    for number in range(count):
        client.do("trigger", "private-room", f"client-{name}-{number}")


# ----------------------------------------------------------------------------------------------------------- files ----


def test_file_tells_a_life(server: ScriptedServer, start: StartClient, log: Path) -> None:
    client = start(server, log_file=str(log))
    assert log.stat().st_mode & 0o777 == 0o600
    client.do("connect")
    connection = server.accept()
    connection.establish("7.7")
    client.do("subscribe", "orders", 0)
    connection.join("orders")
    client.wait_for("subscribed")
    connection.send_close(4200, "restart")
    client.wait_for_state("connecting")
    server.accept().establish("8.8")
    client.wait_for_state("connected")
    client.do("disconnect")
    client.wait_for_state("disconnected")
    client.finish()
    told = lines_of(log)
    assert [line[6] for line in told if line[5] == "connection"][:3] == [
        "connecting, attempt 1: connect was called",
        f"tries {server.host} in plaintext",
        "connected, connection 7.7: the handshake came",
    ]
    assert any(line[4] == "warn" and "code 4200: restart" in line[6] for line in told)
    assert "subscribed to orders" in messages_of(log)
    assert {line[2] for line in told} == {str(client.process.pid)}
    assert {line[4] for line in told} <= {"info", "warn"}


@library_only
def test_level_off_writes_nothing(server: ScriptedServer, start: StartClient, log: Path) -> None:
    client = start(server, log_file=str(log), log_file_level="off")
    client.do("connect")
    server.accept().establish()
    client.wait_for_state("connected")
    client.finish()
    assert log.read_text() == ""


def test_sinks_have_levels_of_their_own(server: ScriptedServer, start: StartClient, log: Path) -> None:
    client = start(server, log_file=str(log), log_file_level="warn", log_level="verbose", log_areas="connection")
    client.do("connect")
    server.accept().establish()
    client.wait_for_state("connected")
    client.wait_for("log", level="verbose", area="connection")
    client.wait_for("log", level="info", area="connection")
    assert not [line for line in client.all("log") if line["area"] != "connection"]
    assert log.read_text() == ""


@library_only
def test_rolling_by_size(talk: Talk, log: Path) -> None:
    client = talk(log_file=str(log), log_file_level="verbose", log_file_bytes_max=2000, log_files_kept=3)
    trigger(client, 200)
    client.do("flush", 10_000)
    until(lambda: "sends client-n-199," in text_of(log))
    files = family(log)
    assert [file.name for file in files] == ["bird.log", "bird.log.1", "bird.log.2"]
    assert all(file.stat().st_size <= 2000 for file in files)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    numbers = [int(found[1]) for m in messages_of(*reversed(files)) if (found := re.match(r"sends client-n-(\d+),", m))]
    assert numbers == list(range(numbers[0], 200))


@library_only
def test_rolling_by_age(talk: Talk, log: Path) -> None:
    client = talk(log_file=str(log), log_file_level="verbose", log_file_age_max_ms=300, log_file_bytes_max=0)
    deadline = time.monotonic() + DEADLINE_S
    while len(family(log)) < 4:
        trigger(client, 1)
        assert time.monotonic() < deadline

    def seconds(line: re.Match[str]) -> float:
        return float(line[1][17:23]) + 60 * int(line[1][14:16])

    files = [lines_of(file) for file in family(log)]
    for newer, older in itertools.pairwise(files):
        assert older[-1][1] <= newer[0][1]
        assert (seconds(newer[0]) - seconds(older[0])) % 3600 >= 0.2  # an entry waits a little before it is written


@library_only
def test_age_goes_on_in_another_process(server: ScriptedServer, talk: Talk, log: Path) -> None:
    log.write_text("2020-02-29T12:00:00.000Z 1/1 info connection: of long ago\n")
    log.chmod(0o640)
    talk(log_file=str(log))
    until(lambda: Path(f"{log}.1").exists())
    assert messages_of(Path(f"{log}.1")) == ["of long ago"]
    # Whoever may read the old file may read the new one.
    assert log.stat().st_mode & 0o777 == 0o640


@library_only
def test_fewer_files_kept_removes_the_others(talk: Talk, log: Path) -> None:
    for number in range(1, 9):
        Path(f"{log}.{number}").write_text("")
    client = talk(log_file=str(log), log_file_level="verbose", log_file_bytes_max=1000, log_files_kept=2)
    trigger(client, 30)
    until(lambda: [file.name for file in family(log)] == ["bird.log", "bird.log.1"])


@library_only
def test_half_a_line_is_left_alone(talk: Talk, log: Path) -> None:
    log.write_text("2020-02-29T12:00:00.000Z 1/1 info conn")  # its process was killed
    talk(log_file=str(log), log_file_age_max_ms=0)
    until(lambda: "subscribed to private-room" in text_of(log))
    first, *others = log.read_text().splitlines()
    assert first.endswith(" conn")
    assert all(LINE.fullmatch(line) for line in others)


@pytest.mark.parametrize("kind", ["in no directory", "directory", "pipe", "in a directory without rights"])
def test_unusable_file_is_named_at_create(server: ScriptedServer, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bird.log"
    if kind == "in no directory":
        path = tmp_path / "missing" / "bird.log"
    elif kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = Path("/proc/bird.log")
    client = ScriptClient([CLIENT_SCRIPT], app_key="pk_test", ws_host=server.host, log_file=str(path))
    assert (client.created["status"], client.created["field"]) == ("BIRD_ERR_VALUE", "log_file")
    assert str(path) in client.created["message"]
    client.finish()


# What is lost is counted; the program is told once; and the file goes on when it can.


@library_only
def test_unlinked_file_begins_anew(talk: Talk, log: Path) -> None:
    client = talk(log_file=str(log), log_file_level="verbose")
    until(lambda: "subscribed to private-room" in text_of(log))
    log.unlink()
    trigger(client, 1)
    until(lambda: "sends client-n-0," in text_of(log))
    lines_of(log)
    assert client.statistic("log_entries_dropped") == 0


@library_only
def test_removed_directory(talk: Talk, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "bird.log"
    log.parent.mkdir()
    client = talk(log_file=str(log), log_file_level="verbose", log_level="error")
    until(lambda: "subscribed to private-room" in text_of(log))
    shutil.rmtree(log.parent)
    trigger(client, 5)
    error = client.wait_for("error", field="log_file")
    assert (error["error"], error["retriable"]) == ("BIRD_ERR_SYSTEM", 1)
    assert f"The log file {log} cannot be written: No such file or directory" in error["message"]
    until(lambda: client.all("log", level="error", area="process", message=error["message"]))
    trigger(client, 5)
    until(lambda: client.statistic("log_entries_dropped") >= 10)
    log.parent.mkdir()
    trigger(client, 1, "after")
    until(lambda: "sends client-after-0," in text_of(log))
    assert re.fullmatch(r"\d+ entries are missing here", messages_of(log)[0])
    assert len(client.all("error")) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["/usr/bin/mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory], check=True)
    yield directory
    # Lazily: the client that writes there ends after this.
    subprocess.run(["/usr/bin/umount", "-l", directory], check=True)


@library_only
def test_full_disk(talk: Talk, small_disk: Path) -> None:
    log = small_disk / "bird.log"
    client = talk(log_file=str(log), log_file_level="verbose")
    until(lambda: "subscribed to private-room" in text_of(log))
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    trigger(client, 200)
    error = client.wait_for("error", field="log_file")
    assert "No space left on device" in error["message"]
    until(lambda: client.statistic("log_entries_dropped") > 50)
    lines_of(log)  # not even half a line more
    filler.unlink()
    trigger(client, 1, "after")
    until(lambda: "sends client-after-0," in text_of(log))
    dropped = client.statistic("log_entries_dropped")
    missing = [int(found[1]) for m in messages_of(log) if (found := re.match(r"(\d+) entries are missing here", m))]
    assert sum(missing) == dropped
    numbers = {int(found[1]) for m in messages_of(log) if (found := re.match(r"sends client-n-(\d+),", m))}
    assert 200 - dropped <= len(numbers) < 200
    assert len(client.all("error")) == 1
    trigger(client, 1, "later")
    until(lambda: "sends client-later-0," in text_of(log))
    assert client.statistic("log_entries_dropped") == dropped


@library_only
def test_file_that_cannot_be_renamed_grows(talk: Talk, log: Path) -> None:
    Path(f"{log}.1").mkdir()  # no file can be renamed to it
    client = talk(log_file=str(log), log_file_level="verbose", log_file_bytes_max=2000, log_files_kept=2)
    trigger(client, 50)
    error = client.wait_for("error", field="log_file")
    assert f"The log file {log} cannot be renamed" in error["message"]
    until(lambda: "sends client-n-49," in text_of(log))
    assert log.stat().st_size > 2000
    assert client.statistic("log_entries_dropped") == 0


@library_only
def test_processes_share_a_file(command_edge: CommandEdge, log: Path) -> None:
    """Two write ten thousand lines each, and a hundred files roll meanwhile: every line is there, once and whole."""
    count = 10_000
    writers = [
        subprocess.Popen([HARNESS, "log_numbered_lines", command_edge.host, log, "20000", str(count), name])
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.wait(DEADLINE_S * 2) == 0
    files = family(log)
    assert len(files) > 50
    assert all(file.stat().st_size <= 20_000 for file in files)
    numbers: dict[str, list[int]] = {"a": [], "b": []}
    for message in messages_of(*reversed(files)):
        found = re.match(r"sends client-([ab])-(\d+),", message)
        if found:
            numbers[found[1]].append(int(found[2]))
    assert numbers == {"a": list(range(count)), "b": list(range(count))}


# --------------------------------------------------------------------------------------------------------- console ----


def with_stderr(redirection: str) -> list[str | Path]:
    return ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", CLIENT_SCRIPT]


def console_client(server: ScriptedServer, redirection: str, **options: str | int) -> tuple[ScriptClient, Connection]:
    client = ScriptClient(
        with_stderr(redirection),
        app_key="pk_test",
        ws_host=server.host,
        allow_insecure=1,
        authorizer=1,
        log_console="verbose",
        **options,
    )
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "private-room", 0)
    client.do("grant", client.wait_for("request")["request"], "key:signature")
    connection.join("private-room", auth="key:signature")
    client.wait_for("subscribed")
    return client, connection


def test_console(server: ScriptedServer, tmp_path: Path) -> None:
    output = tmp_path / "stderr"
    client, _ = console_client(server, f"2>{output}")
    trigger(client, 100)
    client.do("flush", 10_000)
    client.finish()
    messages = messages_of(output)
    assert "subscribed to private-room" in messages
    assert sum(message.startswith("sends client-n-") for message in messages) == 100


def test_closed_console_is_nothing_else(server: ScriptedServer, log: Path) -> None:
    """Its number may belong to a socket of the library's then."""
    client, connection = console_client(server, "2>&-", log_file=str(log), log_file_level="verbose")
    trigger(client, 20)
    for number in range(20):
        assert connection.read_frame().json["event"] == f"client-n-{number}"
    connection.send_text(event("tick", "private-room", 1))
    client.wait_for("event", event="tick")
    client.wait_for_statistic("log_entries_dropped", lambda count: count > 20)
    client.finish()
    messages = messages_of(log)
    assert [m for m in messages if m.startswith("Standard error cannot be written: it is closed")]
    assert sum(message.startswith("sends client-n-") for message in messages) == 20


def test_console_that_nobody_reads(server: ScriptedServer, tmp_path: Path, log: Path) -> None:
    """It holds up neither the connection, nor the other sinks, nor the end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    client, connection = console_client(
        server, f"2>{pipe}", log_file=str(log), log_file_level="verbose", activity_timeout_ms=1000
    )
    trigger(client, 300)
    triggered = pinged = 0
    while triggered < 300 or pinged == 0:
        if connection.read_frame().json == {"event": "bird:ping"}:
            connection.send_text({"event": "bird:pong"})
            pinged += 1
        else:
            triggered += 1
    assert triggered == 300
    until(lambda: client.statistic("log_entries_dropped") > 100)
    started = time.monotonic()
    client.finish()
    assert time.monotonic() - started < 5
    lines = os.read(reader, 65536).decode().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    os.close(reader)
    messages = messages_of(log)
    assert [m for m in messages if m.startswith("Standard error cannot be written: nobody reads it")]
    assert sum(message.startswith("sends client-n-") for message in messages) == 300


def test_console_whose_reader_has_gone(server: ScriptedServer, tmp_path: Path) -> None:
    """No SIGPIPE, whichever thread writes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    client, _ = console_client(server, f"2>{pipe}")
    os.close(reader)
    trigger(client, 10)
    until(lambda: client.statistic("log_entries_dropped") > 0)
    client.finish()


def test_logging_changes_nothing(server: ScriptedServer, start: StartClient, log: Path) -> None:
    """Characters that come in pieces, megabytes and garbage, with everything logged: lines stay short and whole."""
    client = start(server, log_level="verbose", log_file=str(log), log_file_level="verbose")
    client.do("connect")
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.join("orders")
    client.wait_for("subscribed")
    words = "é\U0001f426" * 1000
    whole = dump(event("tick", "orders", words))
    connection.send(frame(TEXT, whole[:1], fin=False))
    connection.send(b"".join(frame(CONTINUATION, whole[at : at + 1], fin=False) for at in range(1, len(whole))))
    connection.send(frame(CONTINUATION, b"") + frame(TEXT, b"\xf0\x9f\x90\xa6\n" * 100_000))
    assert json.loads(client.wait_for("event")["data"]) == words
    large = "x" * 8_000_000
    connection.send_text(event("large", "orders", large), event(large[:100_000], "orders", 1))
    assert len(client.wait_for("event", event="large")["data"]) == len(large) + 2
    client.wait_for("event", data="1")
    assert client.statistic("frames_malformed") == 1
    client.finish()
    lines = lines_of(log)
    assert max(len(line[0]) for line in lines) < 5_000
    assert sum("is no JSON object" in line[6] for line in lines) == 1


# --------------------------------------------------------------------------------------------------------- secrets ----

SECRET = "hush"


def test_no_secret_in_any_sink(
    server: ScriptedServer, auth: ScriptedServer, start: StartClient, face: str, log: Path, tmp_path: Path
) -> None:
    """Everything that is secret is marked; every sink at verbose, and the dump, are without the mark."""
    client = start(
        server,
        auth_endpoint=f"http://{auth.host}/channel?token={SECRET}-query",
        member_auth_endpoint=f"http://{auth.host}/member?token={SECRET}-query#{SECRET}",
        header__X_Token=f"{SECRET}-header",
        proxy=f"http://{SECRET}-user:{SECRET}-password@127.0.0.1:9",
        log_level="verbose",
        log_file=str(log),
        log_file_level="verbose",
    )
    host = auth.host
    member_data = json.dumps({"member_id": "m_7", "member_info": {"name": f"{SECRET}-info"}})
    granted = {"auth": f"key:{SECRET}", "member_data": member_data, "shared_secret": f"{SECRET}-shared"}
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")

    def authorize(status: int, answer: object, **headers: str) -> None:
        post = auth.accept()
        head, _ = post.read_post()
        assert f"token={SECRET}-query" in head
        assert f"{SECRET}-header" in head
        post.respond(status, json.dumps(answer), **headers)

    client.do("subscribe", "presence-room", 0)
    authorize(200, granted)
    connection.read_frame()
    connection.send_text(
        succeeded("presence-room", {"presence": {"ids": ["m_7"], "hash": {"m_7": SECRET}, "count": 1}})
    )
    client.wait_for("subscribed")
    client.do("signin", 1, 0)
    authorize(200, granted)
    connection.read_frame()
    connection.send_text({"event": "bird:signin_success", "data": json.dumps({"member_data": member_data})})
    client.wait_for("signed_in")
    # Payloads, in both directions.
    connection.send_text(event("tick", "presence-room", f"{SECRET}-payload"))
    client.wait_for("event", event="tick")
    client.do("trigger", "presence-room", "client-tick", json.dumps(f"{SECRET}-payload"))
    connection.read_frame()
    connection.send_text(f"{SECRET}: no object")
    # Answers that fail in every way.
    client.do("subscribe", "private-a", 0)
    authorize(403, granted)
    client.wait_for("subscription_error", channel="private-a")
    client.do("subscribe", "private-b", 0)
    authorize(302, granted, Location=f"https://{SECRET}:{SECRET}@example.com/@login?token={SECRET}#{SECRET}")
    redirected = client.wait_for("subscription_error", channel="private-b")
    assert "Location is https://example.com/@login." in redirected["message"]
    client.do("subscribe", "private-c", 0)
    authorize(200, {"member_data": member_data, "shared_secret": f"{SECRET}-shared"})
    client.wait_for("subscription_error", channel="private-c")
    auth.close()
    client.do("subscribe", "private-d", 0)
    until(lambda: "private-d at http" in text_of(log))  # a transport error, whose message names the endpoint
    connection.send_close(4200, "again")
    server.accept().establish("2.2")
    client.wait_for_state("connected")
    dump = client.do("dump")["dump"]
    report = json.loads(dump)
    assert report["options"]["proxy"] == "http://***@127.0.0.1:9"
    assert report["options"]["auth_endpoint"] == f"http://{host}/channel?***"
    assert report["options"]["auth_headers"] == "X_Token: ***"
    records = json.dumps(client.all("log"))
    client.finish()
    told = log.read_text()
    for sink in (dump, records, told):
        assert SECRET not in sink, [line for line in sink.splitlines() if SECRET in line]
    # It was all told, and only the secrets left out.
    areas = {line[5] for line in lines_of(log)}
    assert {"connection", "channel", "authorization", "signin", "wire"} <= areas
    assert f"http://{host}/channel gave HTTP 403 for private-a" in told
    assert "signed in as m_7" in told
    assert "received tick on presence-room" in told


def test_no_secret_of_a_proxy(
    start: StartClient, server: ScriptedServer, auth: ScriptedServer, face: str, log: Path
) -> None:
    """A proxy that refuses, and one that breaks off."""
    client = start(
        server,
        ws_host="edge.invalid:443",
        proxy=f"http://user:{SECRET}@{auth.host}",
        log_level="verbose",
        log_file=str(log),
        log_file_level="verbose",
    )
    client.do("connect")
    proxied = auth.accept()
    request = proxied.read_request()
    assert b"Proxy-Authorization: Basic " in request
    encoded = request.partition(b"Basic ")[2].split()[0].decode()
    proxied.respond(407)
    client.wait_for_state("unavailable")
    auth.accept().close()
    client.wait_for_state("unavailable")
    dump = client.do("dump")["dump"]
    client.finish()
    for sink in (dump, json.dumps(client.all("log")), log.read_text()):
        assert SECRET not in sink
        assert encoded not in sink
        assert f"the http proxy {auth.host}" in sink or f"the proxy {auth.host}" in sink
