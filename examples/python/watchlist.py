"""Signs in as a member and prints who comes online and who goes offline of the members that this one watches: the list
is part of what the backend signs for the signin. Each line of input signs in again, which is how a changed list gets to
the edge; the end of the input ends it.

    watchlist.py APP_KEY EDGE MEMBER_AUTH_ENDPOINT MEMBER_ID

EDGE is a region (us1, eu1), or host:port of a local edge. MEMBER_AUTH_ENDPOINT gets MEMBER_ID as a bearer token, as the
local edge takes it; a real backend gets a session token.
"""

from __future__ import annotations

import argparse
import sys

from bird_realtime import AuthorizationError, BirdRealtime, BirdRealtimeError, ConnectionFailed


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints who of a member's watchlist comes and goes.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("member_auth_endpoint")
    parser.add_argument("member_id")
    arguments = parser.parse_args()

    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(
        arguments.app_key,
        **where,
        allow_insecure=True,
        member_auth_endpoint=arguments.member_auth_endpoint,
        auth_headers={"authorization": f"Bearer {arguments.member_id}"},
    ) as bird:

        @bird.connection.bind("error")
        def failed(error: BirdRealtimeError) -> None:
            # Code 4302: the list was too long, and the edge watches the first of it.
            print(f"error {error.code}: {error}")

        print(f"signed in as {bird.signin().member_id}")
        watchlist = bird.member.watchlist

        @watchlist.bind("online")
        def online(ids: list[str]) -> None:
            print("online:", *ids)

        @watchlist.bind("offline")
        def offline(ids: list[str]) -> None:
            print("offline:", *ids)

        for _ in sys.stdin:
            bird.signin(refresh=True)
            print("signed in again")
        print("still online:", *watchlist.online)


if __name__ == "__main__":
    try:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        main()
    except AuthorizationError as error:
        raise SystemExit(f"not signed in: {error}") from None
    except ConnectionFailed as error:
        raise SystemExit(f"refused: {error} ({error.code})") from None
    except KeyboardInterrupt:
        pass
