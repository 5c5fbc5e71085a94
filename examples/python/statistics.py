"""Subscribes to a channel and tells, for each line of its input, what the client has done so far: a few counters, and
for the line "dump" all that a bug report should say.

    statistics.py APP_KEY EDGE CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge.
"""

from __future__ import annotations

import argparse
import json
import sys

from bird_realtime import BirdRealtime


def main() -> None:
    parser = argparse.ArgumentParser(description="Tells what a client has done.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("channel")
    arguments = parser.parse_args()

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(arguments.app_key, **where, allow_insecure=True) as bird:
        bird.subscribe(arguments.channel)
        for line in sys.stdin:
            if line == "dump\n":
                print(json.dumps(bird.dump()))
                continue
            now = bird.statistics()
            print(
                f"{now.channels_subscribed} of {now.channels} channels, {now.events_delivered} events in "
                f"{now.messages_received} messages, {now.reconnects} reconnects, {now.events_dropped} dropped"
            )


if __name__ == "__main__":
    main()
