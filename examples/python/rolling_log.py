"""Keeps a log of what the client does: a new file each day, seven of them, written by the library; what went wrong
also goes through standard logging. Until the edge refuses the connection or Ctrl-C.

    rolling_log.py APP_KEY EDGE FILE CHANNEL

EDGE is a region (us1, eu1), or host:port of a local edge. Older files are FILE.1, FILE.2, ...
"""

from __future__ import annotations

import argparse
import logging
import sys

from bird_realtime import BirdRealtime, ConnectionFailed


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps a log of a client.")
    parser.add_argument("app_key")
    parser.add_argument("edge", help="a region (us1, eu1), or host:port of a local edge")
    parser.add_argument("file")
    parser.add_argument("channel")
    arguments = parser.parse_args()

    logging.basicConfig(stream=sys.stdout, format="%(levelname)s in %(name)s: %(message)s")
    where = {"ws_host" if ":" in arguments.edge else "region": arguments.edge}
    with BirdRealtime(
        arguments.app_key,
        **where,
        allow_insecure=True,
        log_file=arguments.file,
        log_file_level="verbose",
        log_file_age_max_ms=24 * 60 * 60 * 1000,
        log_files_kept=7,
        log_level="warn",
    ) as bird:
        bird.subscribe(arguments.channel)
        bird.run_forever()


if __name__ == "__main__":
    try:
        main()
    except ConnectionFailed as error:
        raise SystemExit(f"refused: {error} ({error.code})") from None
    except KeyboardInterrupt:
        pass
