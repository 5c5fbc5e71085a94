"""The demo's program in Python: does what program.c and examples/swift do, and prints the same lines.

    program.py APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT MEMBER_ID

The examples in examples/python show one thing each.
"""

from __future__ import annotations

import contextlib
import sys
import threading

from bird_realtime import (
    BirdRealtime,
    BirdRealtimeError,
    ConnectionFailed,
    Event,
    Member,
    StateChange,
    SubscriptionFailed,
    SubscriptionSucceeded,
)


def say(line: str) -> None:
    print(line, flush=True)


def show_state(change: StateChange) -> None:
    say(change.current)


def show_error(error: BirdRealtimeError) -> None:
    say(f"error {error.code or 0} {error.message}")


def show_signin(member: Member) -> None:
    say(f"signed in as {member.member_id}")


def show_subscribed(event: SubscriptionSucceeded) -> None:
    say(f"subscribed {event.channel.name}" + (f" as {event.my_id}, {len(event.members)} here" if event.my_id else ""))


def show_failed(event: SubscriptionFailed) -> None:
    say(f"not on {event.channel.name}: {event.error}")


def show_event(event: Event) -> None:
    say(f"event {event.channel.name} {event.name} {event.text}")


def show_own_event(event: Event) -> None:
    say(f"event me {event.name} {event.text}")


def main() -> None:
    app_key, edge, auth_endpoint, member_auth_endpoint, member_id = sys.argv[1:]
    with BirdRealtime(
        app_key,
        ws_host=edge,
        allow_insecure=True,
        auth_endpoint=auth_endpoint,
        member_auth_endpoint=member_auth_endpoint,
        auth_headers={"authorization": f"Bearer {member_id}"},
        auto_connect=False,
    ) as bird:
        bird.connection.bind("state_change", show_state)
        bird.connection.bind("error", show_error)
        bird.connection.bind("signin_error", show_error)
        bird.connection.bind("signed_in", show_signin)
        for name in ("orders", "private-ledger", "presence-lobby"):
            channel = bird.subscribe(name)
            channel.bind("bird:subscription_succeeded", show_subscribed)
            channel.bind("bird:subscription_error", show_failed)
            channel.bind_global(show_event)
        bird.member.bind_global(show_own_event)
        bird.connect()
        bird.signin()

        ledger = bird.subscribe("private-ledger")

        def pass_on_lines() -> None:
            for line in sys.stdin:
                ledger.trigger("client-said", raw=line.encode())

        threading.Thread(target=pass_on_lines, daemon=True).start()
        with contextlib.suppress(ConnectionFailed):  # the handlers above have told it
            bird.run_forever()


if __name__ == "__main__":
    main()
