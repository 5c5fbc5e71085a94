"""Reconnects in stages, asks itself before every attempt, gives up after so many, and prints all that it is told.

    staged.py APP_KEY EDGE STAGES ATTEMPTS_MAX

EDGE is a region (us1, eu1), or host:port of a local edge. STAGES are attempts x milliseconds, such as
5x3000,5x9000,5x15000; with ATTEMPTS_MAX 0 it never gives up. Enter tries now, whatever the schedule says, also after it
has given up; the end of the input ends it.
"""

from __future__ import annotations

import argparse
import sys

from bird_realtime import BirdRealtime, BirdRealtimeError, StateChange


def may_reconnect(attempt: int, cause: BirdRealtimeError) -> bool | float:
    """The attempt is due: may it begin? A program would look at its battery or its data plan here; this one skips the
    first. True: now; a number: after so many seconds; False: it is skipped."""
    is_allowed = attempt > 1
    print(f"attempt {attempt} {'goes ahead' if is_allowed else 'is skipped'}, after: {cause}")
    return is_allowed


def tell_state(change: StateChange) -> None:
    print(f"{change.current}: {change.reason_text}")


def tell_plan(plan: StateChange) -> None:
    print(f"attempt {plan.attempt} in {plan.delay} s ({plan.policy})")


def main() -> None:
    parser = argparse.ArgumentParser(description="Reconnects in stages.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("stages")
    parser.add_argument("attempts_max", type=int)
    arguments = parser.parse_args()

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(
        arguments.app_key,
        **where,
        allow_insecure=True,
        preset="staged",  # pings after 20 s, two of which may be missed, and attempts in stages
        reconnect_stages=arguments.stages,
        reconnect_attempts_max=arguments.attempts_max,
        may_reconnect=may_reconnect,
        auto_connect=False,
    ) as bird:
        bird.connection.bind("state_change", tell_state)
        bird.connection.bind("connection_lost", lambda _: print("the connection is lost"))
        bird.connection.bind("connecting_in", tell_plan)
        bird.connect()
        for _ in sys.stdin:
            if bird.connection.state == "unavailable":
                bird.retry_now()
            else:
                bird.connect()  # it has given up, or there is nothing to do


if __name__ == "__main__":
    main()
