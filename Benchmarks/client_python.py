"""A Python program with one handler, which takes each event's bytes without parsing them, or with --json its value."""

from __future__ import annotations

import sys
import threading
from typing import Any

from measurement import Run

from bird_realtime import BirdRealtime
from bird_realtime.events import Event

DEADLINE_SECONDS = 60


def main() -> None:
    parses = sys.argv[1:2] == ["--json"]
    if parses:
        del sys.argv[1]
    run = Run.of_arguments()
    is_done = threading.Event()

    def on_bytes(event: Event) -> None:
        if run.count(event.raw):
            is_done.set()

    def on_value(event: Event) -> None:
        if run.count(event.raw) or event.data is None:
            is_done.set()

    server: dict[str, Any] = {"ca_file": run.ca_file} if run.ca_file else {"allow_insecure": True}
    with BirdRealtime(app_key="bench", ws_host=f"127.0.0.1:{run.port}", auto_connect=False, **server) as bird:
        bird.subscribe("bench").bind("tick", on_value if parses else on_bytes)
        bird.connect()
        if not is_done.wait(DEADLINE_SECONDS):
            sys.exit("the events did not arrive in time")
    run.print()


if __name__ == "__main__":
    main()
