"""The clients that are compared. Each is a program with the arguments PORT BYTES WARMUP EVENTS (measure.h)."""

from __future__ import annotations

from dataclasses import dataclass

from processes import PROGRAMS, SWIFT_CLIENT, Command, python


@dataclass(frozen=True)
class Client:
    name: str
    group: str
    """"limit", "bird" or "peer"."""
    command: Command
    event_us: float
    """About what an event takes, and a KiB of it: a first guess of how many a run needs."""
    kib_us: float

    @property
    def is_slow(self) -> bool:
        """Measured less often."""
        return self.event_us > SLOW_EVENT_US

    def guess(self, data_bytes: int) -> float:
        """Events per second."""
        return 1e6 / (self.event_us + self.kib_us * data_bytes / 1024)


SLOW_EVENT_US = 10

# The first is what all others are compared with.
CLIENTS = [
    Client("limit: walk", "limit", [PROGRAMS / "limit_walk"], 0.05, 0.3),
    Client("limit: recv", "limit", [PROGRAMS / "limit_recv"], 0.05, 0.3),
    Client("C loop", "bird", [PROGRAMS / "client_handler", "loop"], 0.3, 0.4),
    Client("C queue", "bird", [PROGRAMS / "client_queue"], 0.4, 0.5),
    Client("C thread", "bird", [PROGRAMS / "client_handler", "thread"], 0.4, 0.5),
    Client("Swift raw", "bird", [SWIFT_CLIENT, "raw"], 0.7, 0.7),
    Client("Swift JSON", "bird", [SWIFT_CLIENT, "json"], 0.7, 0.7),
    Client("Swift sequence", "bird", [SWIFT_CLIENT, "sequence"], 1.5, 0.7),
    Client("Python raw", "bird", python("client_python.py"), 1.5, 1),
    Client("Python JSON", "bird", python("client_python.py", "--json"), 2.5, 1),
    Client("libwebsockets", "peer", [PROGRAMS / "peer_libwebsockets"], 1, 12),
    Client("picows+orjson", "peer", python("peer_picows.py"), 3, 1.5),
    Client("aiohttp", "peer", python("peer_aiohttp.py"), 15, 4),
    Client("websockets", "peer", python("peer_websockets.py"), 18, 3),
    Client("ws-client", "peer", python("peer_websocket_client.py"), 100, 200),
    Client("pysher", "peer", python("peer_pysher.py"), 120, 300),
]


def chosen(*names: str) -> list[Client]:
    by_name = {client.name: client for client in CLIENTS}
    return [by_name[name] for name in names]


# For a check of these programs, on a machine where nothing else is installed.
CHECK_CLIENTS = chosen("limit: walk", "limit: recv", "C loop", "C queue", "C thread", "Python raw", "Python JSON")

# Over TLS, without those that are far behind without it.
TLS_CLIENTS = [
    Client("limit: walk", "limit", [PROGRAMS / "limit_tls"], 0.3, 0.5),
    *chosen("C loop", "C queue", "C thread", "Swift raw", "Swift JSON", "Python raw", "Python JSON"),
    *chosen("libwebsockets", "picows+orjson", "aiohttp", "websockets"),
]

# Those whose events tell how long they were under way.
LATENCY_LIMIT = Client("limit: epoll", "limit", [PROGRAMS / "limit_epoll"], 0, 0)
LATENCY_CLIENTS = [
    LATENCY_LIMIT,
    *chosen("C loop", "C queue", "C thread", "Python raw", "Python JSON", "picows+orjson"),
]
LATENCY_CHECK_CLIENTS = [client for client in LATENCY_CLIENTS if client.group != "peer"]
