"""A program that does not keep up, asks for much, and has no room or no files left; and clocks that jump."""

from __future__ import annotations

import contextlib
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import telling
from case import Case
from certificates import Authority
from clock import Clock
from lab_edge import CHANNEL, LabEdge
from paths import CLIENT_SCRIPT, PYTHON_CLIENT, PYTHON_SOURCES
from scripted_server import PING, PONG, Connection, ScriptedServer, event, frame, succeeded, text
from trial import LabClient, Measured, Trial

TITLE = "The program and its machine"

AT_ONCE_S = (0.0, 0.1)
FIRST_WAIT_S = (0.0, 1.0)
SECOND_WAIT_S = (0.0, 2.0)
STOPPED_S = 3.0
ACTIVITY_S = 1
QUEUE_RECORDS = 20
PYTHON_PROGRAM = ("env", f"PYTHONPATH={PYTHON_SOURCES}", sys.executable, PYTHON_CLIENT)
NOTICE = ("error BIRD_ERR_FULL overflow",)
LOG_FILE = ("error BIRD_ERR_SYSTEM log_file",)

WAYS = {
    "drain": "QUEUE mode, drained",
    "dispatch": "QUEUE mode, dispatched",
    "thread": "THREAD mode",
    "host": "LOOP mode, the loop is the program's",
}


def connection_to(
    trial: Trial, program: Sequence[str | Path] = (CLIENT_SCRIPT,), **options: Any
) -> tuple[Connection, LabClient]:
    """For what the edge of the lab does not do: a connection on which the channel is subscribed."""
    server = trial.stack.enter_context(ScriptedServer())
    client = LabClient(program, app_key="pk_lab", ws_host=server.host, allow_insecure=1, **options)
    trial.stack.callback(client.finish)
    client.do("subscribe", CHANNEL, 0)
    client.do("connect")
    connection = server.accept()
    connection.establish()
    connection.join(CHANNEL)
    client.wait_for("subscribed")
    return connection, client


def numbered(numbers: range) -> bytes:
    return b"".join(text(event("tick", CHANNEL, number)) for number in numbers)


def measured(client: LabClient, sent: int, since_s: float, note: str = "") -> Measured:
    """Of so many numbers, from 0 on, of which the last has come."""
    records = client.everything()
    telling.check(records)
    numbers = [int(record["data"]) for record in client.all("event")]
    assert numbers == sorted(set(numbers)), f"not in order, or twice: {numbers}"
    said = [record for record in records if record["at_s"] > since_s and telling.words(record)]
    return Measured(
        told=telling.told(said),
        told_s=said[0]["at_s"] - since_s if said else None,
        back_s=None,
        lost=sent - len(numbers),
        received=len(numbers),
        away=0,
        note=note,
    )


# ------------------------------------------------------------------------------------------------- slow consumers ----


def stops(way: str, policy: str) -> Callable[[Trial], Measured]:
    """The program takes nothing for a while, and the edge goes on publishing."""

    def run(trial: Trial) -> Measured:
        edge = trial.serve(activity_timeout_s=ACTIVITY_S)
        pings: list[float] = []
        edge.on_ping = lambda: pings.append(time.monotonic())
        trial.start(edge)
        trial.wait_for_service()
        stopped_at = time.monotonic()
        trial.fault()
        trial.client.do("pause")
        time.sleep(STOPPED_S)
        if policy == "pause" and way != "host":
            assert trial.client.statistic("read_pauses") == 1
            assert pings, "the connection was not kept alive"
        trial.heal()
        trial.client.do("resume")
        newest = edge.sessions[-1].sent[-1][0]  # it may have been dropped before the program went on
        trial.wait_until(lambda: int(trial.client.all("event")[-1]["data"]) > newest, "newer event")
        found = trial.measure()
        dropped = trial.client.statistic("events_dropped")
        said = [record for record in trial.client.everything() if record["at_s"] > stopped_at]
        notices = trial.client.all("error")
        assert len(notices) == (policy != "pause")
        note = f"{dropped} dropped, as it wants, and counted." if dropped else ""
        return replace(
            found,
            told=telling.told(said),
            told_s=notices[0]["at_s"] - stopped_at if notices else None,
            lost=found.lost - dropped,
            away=found.away - dropped,
            note=note,
        )

    return run


def stop_case(way: str, policy: str) -> Case:
    """In LOOP mode there is no queue: handlers hold up the reading itself."""
    bound: dict[str, str | int] = {} if way == "host" else {"overflow": policy, "queue_records_max": QUEUE_RECORDS}
    return Case(
        f"stops-{way}-{policy}",
        f"the program takes nothing for {STOPPED_S:g} s ({WAYS[way]}).",
        stops(way, policy),
        () if policy == "pause" else NOTICE,
        None if policy == "pause" else (STOPPED_S, STOPPED_S + 0.2),
        None,
        {"consume": way, **bound},
    )


def blocks_under_pings(trial: Trial) -> Measured:
    connection, client = connection_to(trial, consume="thread")
    connection.send(numbered(range(1)))
    client.wait_for("event")
    began_at = time.monotonic()
    client.do("pause")
    connection.send(numbered(range(1, 2)))  # in whose handler the program stands
    worst_s = 0.0
    for second in range(30):
        asked_at = time.monotonic()
        connection.send(frame(PING, b"edge") + text({"event": "bird:ping"}))
        assert connection.read_frame().opcode == PONG
        connection.expect({"event": "bird:pong"})
        worst_s = max(worst_s, time.monotonic() - asked_at)
        connection.send(numbered(range(second + 2, second + 3)))
        time.sleep(1)
    assert len(client.all("event")) == 1, "the program did not stand"
    client.do("resume")
    client.wait_for("event", data="31")
    assert worst_s < 1
    return measured(client, 32, began_at, f"30 pings of each kind, each answered within {worst_s * 1000:.0f} ms.")


def takes_a_burst(way: str) -> Callable[[Trial], Measured]:
    count = 100_000

    def run(trial: Trial) -> Measured:
        connection, client = connection_to(trial, consume=way)
        burst = numbered(range(count))
        began_at = time.monotonic()
        connection.send(burst)
        client.wait_for("event", data=str(count - 1))
        took_s = time.monotonic() - began_at
        return measured(client, count, began_at, f"They came within {took_s:.1f} s, each printed as a line.")

    return run


def joins_and_leaves(trial: Trial) -> Measured:
    """On an edge that takes a second subscribe, or an unsubscribe without one, for an error."""
    rounds = 1000
    connection, client = connection_to(trial, PYTHON_PROGRAM)
    subscribes = [1]

    def serve() -> None:
        is_joined = True
        while subscribes[0] <= rounds:
            message = connection.read_frame().json
            wants = message["event"] == "bird:subscribe"
            if wants == is_joined:
                connection.send_text({"event": "bird:error", "data": {"code": None, "message": str(message)}})
            is_joined = wants
            if wants:
                connection.send_text(succeeded(CHANNEL))
                subscribes[0] += 1

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    began_at = time.monotonic()
    for _ in range(rounds):
        client.do("unsubscribe", CHANNEL)
        client.do("subscribe", CHANNEL, 0)
    server.join(60)
    assert subscribes[0] == rounds + 1
    connection.send(numbered(range(100)))
    client.wait_for("event", data="99")
    took_s = time.monotonic() - began_at
    return measured(client, 100, began_at, f"{rounds} times, within {took_s:.1f} s.")


# ----------------------------------------------------------------------------------------------------------- logs ----


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    disk = directory / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)  # noqa: S607
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)  # noqa: S607


def logs(trial: Trial, directory: Path, **options: Any) -> Path:
    """A client that writes a line for each message, and its file."""
    log = directory / "bird.log"
    trial.start(trial.serve(), log_file=str(log), log_file_level="verbose", **options)
    trial.wait_for_service()
    return log


def goes_on(trial: Trial, log: Path) -> None:
    """The file says how much is missing in it, and is written again."""
    trial.wait_until(lambda: log.exists() and "entries are missing here" in log.read_text(), "line about the gap")
    dropped = trial.client.statistic("log_entries_dropped")
    assert dropped > 0
    trial.note = f"{dropped} log entries are missing; the file says where."


def disk_is_full(trial: Trial) -> None:
    disk = trial.stack.enter_context(small_disk(trial.directory))
    log = logs(trial, disk)
    filler = disk / "filler"
    trial.fault()
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    trial.wait_until(lambda: trial.client.statistic("log_entries_dropped") > 50, "missing entries")
    filler.unlink()
    trial.heal()
    goes_on(trial, log)


def directory_is_removed(trial: Trial) -> None:
    directory = trial.directory / "logs"
    directory.mkdir()
    log = logs(trial, directory)
    trial.fault()
    shutil.rmtree(directory)
    trial.wait_until(lambda: trial.client.statistic("log_entries_dropped") > 50, "missing entries")
    directory.mkdir()
    trial.heal()
    goes_on(trial, log)


def directory_is_read_only(trial: Trial) -> None:
    """A mount of its own over the open file: writing goes on, renaming does not."""
    disk = trial.stack.enter_context(small_disk(trial.directory))
    log = logs(trial, disk, log_file_bytes_max=8_000)
    trial.fault()
    for words in (["--bind", str(disk)], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *words, disk], check=True)  # noqa: S607
    trial.wait_until_told()
    trial.wait_until(lambda: log.stat().st_size > 16_000, "growth")
    subprocess.run(["umount", disk], check=True)  # noqa: S607
    trial.heal()
    trial.wait_until(lambda: Path(f"{log}.1").exists(), "another file")
    assert trial.client.statistic("log_entries_dropped") == 0
    trial.note = "No log entry is missing: the file grows until it can be renamed."


# ---------------------------------------------------------------------------------------------------------- files ----


def has_no_files(trial: Trial) -> None:
    """None may be opened, and the connection ends; until the program hears of it."""
    pid = trial.client.process.pid
    trial.wait_for_service()
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    trial.order(Connection.reset)
    trial.wait_until(lambda: bool(trial.client.all("error")), "error")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    trial.heal()


def has_no_files_in_plaintext(trial: Trial) -> None:
    trial.start(trial.serve())
    has_no_files(trial)


def has_no_files_with_tls(trial: Trial) -> None:
    authority = Authority(trial.directory / "ca")
    edge = LabEdge(ScriptedServer(), authority.server_context("DNS:localhost"), on_fault=trial.fault)
    trial.stack.enter_context(edge)
    trial.start(edge, f"localhost:{edge.port}", ca_file=str(authority.file))
    has_no_files(trial)


# --------------------------------------------------------------------------------------------------------- clocks ----


def wall_clock_jumps(hours: int) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        clock = Clock(trial.directory)
        trial.start(trial.serve(activity_timeout_s=ACTIVITY_S), command=clock.command)
        trial.wait_for_service()
        trial.fault()
        clock.set_wall_clock(hours * 3600)
        time.sleep(2 * ACTIVITY_S)

    return run


BURST = "the edge sends 100 000 events at once"
NO_FILES = "the program has no file descriptor left when the connection ends, until it hears of it"
WITHOUT_FILES = (
    "unavailable BIRD_ERR_LOST",
    "error BIRD_ERR_SYSTEM fd",
    "unavailable BIRD_ERR_SYSTEM",
    "connected",
)

CASES = [
    *(
        stop_case(way, policy)
        for way in ("drain", "dispatch", "thread")
        for policy in ("pause", "drop-oldest", "drop-newest")
    ),
    stop_case("host", "pause"),
    Case(
        "blocks-30-s",
        "a handler blocks for 30 s in THREAD mode, and the edge pings every second.",
        blocks_under_pings,
        (),
        None,
        None,
        {},
        1,
    ),
    *(
        Case(f"burst-{way}", f"{BURST} ({WAYS[way]}).", takes_a_burst(way), (), None, None, {}, 1)
        for way in ("drain", "thread", "host")
    ),
    Case(
        "storm",
        "a program in Python leaves a channel and joins it again; the edge takes a second subscribe for an error.",
        joins_and_leaves,
        (),
        None,
        None,
        {},
        1,
    ),
    Case("log-disk-full", "no room for the log file.", disk_is_full, LOG_FILE, (0.0, 1.0), None),
    Case(
        "log-directory-removed",
        "the directory of the log file is removed.",
        directory_is_removed,
        LOG_FILE,
        AT_ONCE_S,
        None,
    ),
    Case(
        "log-read-only",
        "the directory of the log file becomes read-only.",
        directory_is_read_only,
        LOG_FILE,
        (0.0, 3.0),  # when it is to be renamed
        None,
    ),
    Case("no-files", NO_FILES, has_no_files_in_plaintext, WITHOUT_FILES, AT_ONCE_S, SECOND_WAIT_S),
    Case("no-files-tls", f"{NO_FILES} (TLS, by name)", has_no_files_with_tls, WITHOUT_FILES, AT_ONCE_S, SECOND_WAIT_S),
    Case("wall-clock-ahead", "the wall clock is set 12 h ahead", wall_clock_jumps(12), (), None, None),
    Case("wall-clock-back", "the wall clock is set 12 h back", wall_clock_jumps(-12), (), None, None),
]
