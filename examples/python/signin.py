"""Signs in as a member and prints what is sent to that member, until the member is terminated or Ctrl-C.

    signin.py APP_KEY EDGE MEMBER_AUTH_ENDPOINT MEMBER_ID

EDGE is a region (us1, eu1), or host:port of a local edge. MEMBER_AUTH_ENDPOINT gets MEMBER_ID as a bearer token, as the
local edge takes it; a real backend gets a session token.
"""

from __future__ import annotations

import argparse

from bird_realtime import AuthorizationError, BirdRealtime, ConnectionFailed


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints what is sent to a member.")
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
        events = bird.member.events()
        me = bird.signin()
        print(f"signed in as {me.member_id}")
        for event in events:
            print(f"to me: {event.name} {event.text}")


if __name__ == "__main__":
    try:
        main()
    except AuthorizationError as error:
        raise SystemExit(f"not signed in: {error}") from None
    except ConnectionFailed as error:
        raise SystemExit(f"refused: {error} ({error.code})") from None
    except KeyboardInterrupt:
        pass
