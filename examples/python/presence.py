"""Joins a presence channel and shows who comes and goes, until Ctrl-C.

    presence.py APP_KEY EDGE AUTH_ENDPOINT MEMBER_ID CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge. AUTH_ENDPOINT gets MEMBER_ID as a bearer token, as the local
edge takes it; a real backend gets a session token.
"""

from __future__ import annotations

import argparse
import contextlib

from bird_realtime import BirdRealtime, MemberEvent, SubscriptionFailed, SubscriptionSucceeded


def show_roster(event: SubscriptionSucceeded) -> None:
    print(f"me: {event.my_id}, members: {', '.join(event.members)}")


def show_arrival(event: MemberEvent) -> None:
    print(f"joined: {event.member.member_id} {event.member.member_info}")


def show_departure(event: MemberEvent) -> None:
    print(f"left: {event.member.member_id}, still here: {', '.join(event.channel.members)}")


def show_error(event: SubscriptionFailed) -> None:
    print(f"not on {event.channel}: {event.error}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Shows who is on a presence channel.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("auth_endpoint")
    parser.add_argument("member_id")
    parser.add_argument("channel")
    arguments = parser.parse_args()

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(
        arguments.app_key,
        **where,
        allow_insecure=True,
        auth_endpoint=arguments.auth_endpoint,
        auth_headers={"authorization": f"Bearer {arguments.member_id}"},
        auto_connect=False,
    ) as bird:
        room = bird.subscribe(arguments.channel)
        room.bind("bird:subscription_succeeded", show_roster)
        room.bind("bird:member_added", show_arrival)
        room.bind("bird:member_removed", show_departure)
        room.bind("bird:subscription_error", show_error)
        bird.connect()
        bird.run_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
