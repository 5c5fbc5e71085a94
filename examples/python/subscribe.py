"""Prints the events of channels until the edge refuses the connection, or Ctrl-C.

    subscribe.py APP_KEY EDGE CHANNEL...

EDGE is a region (us1, eu1), or host:port of a local edge.
"""

from __future__ import annotations

import argparse

from bird_realtime import BirdRealtime, ConnectionFailed, Event, StateChange, SubscriptionSucceeded


def show_state(change: StateChange) -> None:
    print(change.current, change.reason_text)


def show_subscription(event: SubscriptionSucceeded) -> None:
    # Nothing is replayed: after "again" a program refetches what it shows.
    print(f"subscribed to {event.channel}" + (" again" if event.is_resubscribe else ""))


def show_event(event: Event) -> None:
    print(f"{event.channel}: {event.name} {event.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the events of channels.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("channel", nargs="+")
    arguments = parser.parse_args()

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(arguments.app_key, **where, allow_insecure=True, auto_connect=False) as bird:
        bird.connection.bind("state_change", show_state)
        bird.bind("bird:subscription_succeeded", show_subscription)
        bird.bind_global(show_event)
        for name in arguments.channel:
            bird.subscribe(name)
        bird.connect()
        bird.run_forever()


if __name__ == "__main__":
    try:
        main()
    except ConnectionFailed as error:
        raise SystemExit(f"refused: {error} ({error.code})") from None
    except KeyboardInterrupt:
        pass
