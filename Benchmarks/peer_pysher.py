"""PyPI pysher, a client of the Pusher protocol. The server speaks that to the app of this key."""

from __future__ import annotations

import json
import sys
import threading

import pysher
from measurement import Run

DEADLINE_SECONDS = 110


def main() -> None:
    run = Run.of_arguments()
    is_done = threading.Event()
    client = pysher.Pusher("pusher", custom_host="127.0.0.1", port=run.port, secure=False)

    def on_tick(text: str) -> None:
        if json.loads(text) is None or run.count(text):
            is_done.set()

    def on_connected(_: str) -> None:
        client.subscribe("bench").bind("tick", on_tick)

    client.connection.bind("pusher:connection_established", on_connected)
    client.connect()
    if not is_done.wait(DEADLINE_SECONDS):
        sys.exit("the events did not arrive in time")
    run.print()


main()
