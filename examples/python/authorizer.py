"""Authorizes its channel itself instead of asking an endpoint, until Ctrl-C.

    authorizer.py APP_KEY EDGE CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge. The app's secret is read from the environment variable
APP_SECRET; a program that has it is a backend, never an app in the hands of users.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import os

from bird_realtime import BirdRealtime, Event


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the events of a channel that it authorizes itself.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("channel")
    arguments = parser.parse_args()
    app_secret = os.environ["APP_SECRET"].encode()

    def authorize(channel_name: str, connection_id: str) -> dict[str, str]:
        """Asked again for every connection, since a signature is good for one only."""
        signed = f"{connection_id}:{channel_name}".encode()
        return {"auth": f"{arguments.app_key}:{hmac.new(app_secret, signed, hashlib.sha256).hexdigest()}"}

    def show(event: Event) -> None:
        print(f"{event.channel}: {event.name} {event.text}")

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(arguments.app_key, **where, allow_insecure=True, authorizer=authorize) as bird:
        channel = bird.subscribe(arguments.channel).bind_global(show)
        channel.wait_subscribed()
        print(f"subscribed to {channel}")
        bird.run_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
