"""Which HTTP requests the edge serves, WebSocket upgrades included.

The edge runs beside browsers, and a page from anywhere can send requests to this machine. Two headers tell those:
`Host` is the page's own name where that has been made to resolve to this machine (DNS rebinding), and `Origin` is the
page that sends the request. A request of a program has a name of the edge as its host, and no origin.
"""

from __future__ import annotations

from collections.abc import Mapping

from .config import EdgeConfig
from .hosts import address_of, host_of, is_loopback, origin_host, plain_host

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104


class Guard:
    """The rule of one edge: loopback names and addresses, the address it listens on, and what its options add."""

    def __init__(self, config: EdgeConfig) -> None:
        self._hosts = {plain_host(host) for host in (config.host, *config.allow_hosts)}
        self._origins = {origin.lower() for origin in config.allow_origins}
        # An edge that listens everywhere is reached by addresses that nobody has named. They are no danger: what has a
        # number for its name cannot be made to resolve to another machine.
        self._takes_addresses = config.host in _EVERY_ADDRESS

    def problem(self, headers: Mapping[str, str]) -> str | None:
        """Why a request with these headers is not served, and what to do; None: it is. Names are in lower case."""
        host = host_of(headers.get("host", ""))
        if host is None or not self._is_own(host):
            return (
                f"the Host {headers.get('host', '')!r} is not one of this edge: use a loopback name, "
                "or start the edge with --allow-host NAME"
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_welcome(origin.lower(), host):
            return (
                f"the Origin {origin!r} may not use this edge: use a page of this machine, "
                "or start the edge with --allow-origin ORIGIN"
            )
        return None

    def _is_own(self, host: str) -> bool:
        return is_loopback(host) or host in self._hosts or (self._takes_addresses and address_of(host) is not None)

    def _is_welcome(self, origin: str, host: str) -> bool:
        if origin in self._origins or "*" in self._origins:
            return True
        page = origin_host(origin)
        return page is not None and (is_loopback(page) or page == host)
