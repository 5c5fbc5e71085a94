"""A process between a client and an edge, which can be stopped and killed: `relay.py PORT` prints its own port."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

INTEGRATION = Path(__file__).resolve().parents[1] / "integration"


class Relay:
    """Ends with its context, whatever state it is in."""

    def __init__(self, port: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.host = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    sys.path.insert(0, str(INTEGRATION))
    from tls_front import TlsFront

    with TlsFront(None, int(sys.argv[1])) as front:
        print(front.port, flush=True)
        sys.stdin.read()
