"""Prints what is published on an encrypted channel, and what could not be opened, until Ctrl-C.

    encrypted.py APP_KEY EDGE AUTH_ENDPOINT CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge. The name of the channel begins with private-encrypted-. The
endpoint gives the channel's key with each authorization (shared_secret), so nothing else is to be done: events arrive
as on any other channel, and when the backend's master key has been rotated, the endpoint is asked for the new key.
"""

from __future__ import annotations

import argparse
import contextlib

from bird_realtime import BirdRealtime, DecryptionFailed, Event


def show(event: Event) -> None:
    print(f"{event.channel}: {event.name} {event.text}", flush=True)


def show_lost(event: DecryptionFailed) -> None:
    """Its content is lost; a program that keeps state should fetch it anew from where it comes from."""
    print(f"lost {event.text}: {event.error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the events of an encrypted channel.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("auth_endpoint")
    parser.add_argument("channel")
    arguments = parser.parse_args()
    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(arguments.app_key, **where, allow_insecure=True, auth_endpoint=arguments.auth_endpoint) as bird:
        channel = bird.subscribe(arguments.channel).bind_global(show)
        channel.bind("bird:decryption_error", show_lost)
        channel.wait_subscribed()
        print(f"subscribed to {channel}", flush=True)
        bird.run_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
