"""HTTP requests and replies as values, so that the REST API and the auth backend need no server to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .jsontext import dump


@dataclass(frozen=True)
class Call:
    """A request. `path` holds the segments of the raw path, each decoded; header names are lower case."""

    method: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    @property
    def is_json(self) -> bool:
        """Whether the body says of itself that it is JSON. A browser asks before it sends that to another origin."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"

    def bearer(self) -> str | None:
        """The token of `Authorization: Bearer <token>`; None when there is none."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() or None if scheme.lower() == "bearer" else None


@dataclass(frozen=True)
class Reply:
    """A response; a body of None sends none."""

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def json_reply(status: int, value: object, headers: Mapping[str, str] | None = None) -> Reply:
    """A response with a JSON body."""
    return Reply(status, dump(value).encode(), {"content-type": "application/json", **(headers or {})})
