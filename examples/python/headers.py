"""Sends a token that does not live long with each authorization, until Ctrl-C.

    headers.py APP_KEY EDGE AUTH_ENDPOINT TOKEN_FILE CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge; AUTH_ENDPOINT is the URL of the backend that authorizes
CHANNEL for those who show the token. Whoever renews the token writes it into the file, which is read whenever a header
is needed.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from bird_realtime import BirdRealtime, Event


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the events of a channel that takes a token.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("auth_endpoint", help="the URL of the backend")
    parser.add_argument("token_file", type=Path)
    parser.add_argument("channel")
    arguments = parser.parse_args()

    def provide_headers(endpoint: str) -> dict[str, str]:
        """Asked before every POST; a file that is not there is an OSError, and has the library ask again later."""
        try:
            token = arguments.token_file.read_text().strip()
        except OSError:
            print(f"no token for {endpoint} yet")
            raise
        print(f"a token for {endpoint}")
        return {"Authorization": f"Bearer {token}"}

    def show(event: Event) -> None:
        print(f"{event.channel}: {event.name} {event.text}")

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(
        arguments.app_key,
        **where,
        allow_insecure=True,
        auth_endpoint=arguments.auth_endpoint,
        header_provider=provide_headers,
        auto_connect=False,
    ) as bird:
        channel = bird.subscribe(arguments.channel).bind_global(show)
        channel.bind("bird:subscription_succeeded", lambda _: print(f"subscribed to {channel}"))
        channel.bind("bird:subscription_error", lambda event: print(f"not on {channel}: {event.error}"))
        bird.connect()
        bird.run_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
