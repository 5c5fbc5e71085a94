"""Hosts and origins as HTTP requests carry them."""

from __future__ import annotations

import ipaddress
import re
from typing import Union

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

_NAME = r"[^\[\]:/@?#\s]+"
_AUTHORITY = re.compile(rf"(?:\[([0-9a-fA-F:.%]+)\]|({_NAME}))(?::\d*)?")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)")


def host_of(authority: str) -> str | None:
    """The host of HOST[:PORT], as `plain_host` gives it; None: it is none."""
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else plain_host(match[1] or match[2])


def plain_host(host: str) -> str:
    """The one form of a name or an address."""
    address = address_of(host)
    return str(address) if address is not None else host.lower().rstrip(".")


def address_of(host: str) -> Address | None:
    """The address that a host is as a number."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a plain host is always this machine (RFC 6761, 6.3)."""
    address = address_of(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def origin_host(origin: str) -> str | None:
    """The plain host of the origin of a page that came by HTTP; None: it is another kind, or none."""
    match = _ORIGIN.fullmatch(origin)
    return host_of(match[2]) if match is not None and match[1] in ("http", "https") else None


def host_problem(host: str) -> str | None:
    """What is wrong with a host that stands without a port, if anything."""
    is_fit = address_of(host) is not None or re.fullmatch(_NAME, host) is not None
    return None if is_fit else "must be a name or an address, without a port"


def origin_problem(origin: str) -> str | None:
    """What is wrong with an origin that may be allowed, if anything."""
    match = _ORIGIN.fullmatch(origin.lower())
    is_fit = origin in ("*", "null") or (match is not None and host_of(match[2]) is not None)
    return None if is_fit else "must be SCHEME://HOST[:PORT], as browsers send it, or null, or *"
