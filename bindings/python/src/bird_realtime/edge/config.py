"""What an edge is told when it starts: the app record, the app key and the edge's own limits."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .hosts import host_problem, origin_problem
from .names import member_id_problem

DEFAULT_APP_ID = "rap_00000000000000000000edge01"
MASTER_KEY_BYTES = 32
CACHE_TTL_MAX_S = 1800.0

_APP_ID = re.compile(r"rap_[0-9a-hjkmnp-tv-z]{26}")
_STATUSES = ("active", "suspended")


class ConfigError(ValueError):
    """An option that cannot be used. `option` is its name in Python; the CLI spells it `--like-this`."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option}: {problem}")
        self.option = option
        self.problem = problem


@dataclass(frozen=True)
class App:
    """The app record (Bird protocol §20.11): identifier, feature flags, all off by default, and status."""

    app_id: str = DEFAULT_APP_ID
    client_events: bool = False
    connection_counting: bool = False
    connection_count_events: bool = False
    watchlist_events: bool = False
    authorized_connections: bool = False
    status: str = "active"
    connection_quota: int | None = None

    def __post_init__(self) -> None:
        if not _APP_ID.fullmatch(self.app_id):
            raise ConfigError("app_id", "must be rap_ and 26 characters of 0-9 a-z without i, l, o and u")
        if self.connection_count_events and not self.connection_counting:
            raise ConfigError("connection_count_events", "needs connection_counting to be on")
        if self.status not in _STATUSES:
            raise ConfigError("status", f"must be one of {', '.join(_STATUSES)}")
        if self.connection_quota is not None and self.connection_quota < 0:
            raise ConfigError("connection_quota", "must not be negative")


@dataclass(frozen=True)
class EdgeConfig:
    """The options of an edge. Times are seconds.

    `api_key` is the bearer token of the REST API; None accepts any. `members` are the member ids that the
    auth backend knows, with their member_info; the first is the default, and an empty mapping lets anyone in.
    `ping_after_s` makes the edge ping a client that has been quiet for so long and close it with 4201 when
    `pong_timeout_s` passes without a message. `strict` answers a double subscribe and a needless unsubscribe
    with an error frame; otherwise the former succeeds again and the latter is ignored. `outbox_limit_bytes`
    bounds what waits for one slow reader; beyond it the connection closes with 4100. `watchlists` are the members
    that each member watches, as the auth backend signs them. `client_event_sender_key` is a top-level key under which
    client events on presence channels carry the member id of the sender (Pusher's is `user_id`; Bird's is not public,
    so this one follows the other renamed keys); None: they do not.
    `allow_origins` are the origins of browser pages that may use the edge beside those of this machine, as browsers
    send them, or "*"; `allow_hosts` are names by which it is reached beside `host` and those of loopback.
    """

    host: str = "127.0.0.1"
    port: int = 0
    app: App = field(default_factory=App)
    app_key: str = "pk_local"
    app_secret: str = "sk_local_not_a_real_secret"  # noqa: S105
    api_key: str | None = None
    members: Mapping[str, Any] = field(default_factory=dict)
    watchlists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    encryption_master_key: bytes = field(default_factory=lambda: secrets.token_bytes(MASTER_KEY_BYTES))
    activity_timeout_s: int = 120
    authorized_deadline_s: float = 30.0
    ping_after_s: float | None = None
    pong_timeout_s: float = 30.0
    strict: bool = True
    double_encoding: bool = True
    presence_limit_members: int = 100
    member_info_limit_bytes: int = 1024
    client_event_limit_bytes: int = 10_240
    client_events_per_s: int = 10
    client_event_sender_key: str | None = "member_id"
    watchlist_limit_members: int = 100
    cache_ttl_s: float = 1800.0
    outbox_limit_bytes: int = 4 * 1024 * 1024
    tls_cert: str | None = None
    tls_key: str | None = None
    allow_origins: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError("port", "must be between 0 (any free port) and 65535")
        if not self.app_key or ":" in self.app_key:
            raise ConfigError("app_key", "must not be empty or contain a colon")
        if not self.app_secret:
            raise ConfigError("app_secret", "must not be empty")
        if self.api_key == "":
            raise ConfigError("api_key", "must not be empty; leave it out to accept any API key")
        for member_id in self.members:
            _check_member("member", member_id)
        for member_id, watched in self.watchlists.items():
            for each in (member_id, *watched):
                _check_member("watch", each)
        for origin in self.allow_origins:
            problem = origin_problem(origin)
            if problem is not None:
                raise ConfigError("allow_origin", f"{origin!r}: {problem}")
        for host in self.allow_hosts:
            problem = host_problem(host)
            if problem is not None:
                raise ConfigError("allow_host", f"{host!r}: {problem}")
        if len(self.encryption_master_key) != MASTER_KEY_BYTES:
            raise ConfigError("encryption_master_key", f"must be {MASTER_KEY_BYTES} bytes")
        if self.tls_key and not self.tls_cert:
            raise ConfigError("tls_key", "needs tls_cert")
        for option in ("activity_timeout_s", "authorized_deadline_s", "pong_timeout_s", "ping_after_s", "cache_ttl_s"):
            value = getattr(self, option)
            if value is not None and value <= 0:
                raise ConfigError(option, "must be more than 0 seconds")
        if self.cache_ttl_s > CACHE_TTL_MAX_S:
            raise ConfigError("cache_ttl_s", f"must be at most {CACHE_TTL_MAX_S:g} seconds")
        if self.client_event_sender_key in ("", "event", "channel", "data"):
            raise ConfigError("client_event_sender_key", "must be a key that frames do not have yet, and not empty")
        limits = ("presence_limit_members", "member_info_limit_bytes", "client_event_limit_bytes")
        for option in (*limits, "watchlist_limit_members"):
            if getattr(self, option) < 0:
                raise ConfigError(option, "must not be negative")
        for option in ("client_events_per_s", "outbox_limit_bytes"):
            if getattr(self, option) < 1:
                raise ConfigError(option, "must be at least 1")

    @property
    def ws_host(self) -> str:
        """Host and port, as clients take them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def ws_url(self) -> str:
        """The WebSocket URL, without client name and version."""
        app_key = quote(self.app_key, safe="")
        return f"{'wss' if self.tls_cert else 'ws'}://{self.ws_host}/app/{app_key}?protocol=7"

    @property
    def base_url(self) -> str:
        """The base URL of everything that speaks HTTP."""
        return f"{'https' if self.tls_cert else 'http'}://{self.ws_host}"

    @property
    def auth_endpoint(self) -> str:
        return f"{self.base_url}/bird/auth"

    @property
    def member_auth_endpoint(self) -> str:
        return f"{self.base_url}/bird/auth/member"

    @property
    def controls_url(self) -> str:
        return f"{self.base_url}/_edge/"

    @property
    def encryption_master_key_base64(self) -> str:
        return base64.b64encode(self.encryption_master_key).decode()


def _check_member(option: str, member_id: str) -> None:
    problem = member_id_problem(member_id)
    if problem is not None:
        raise ConfigError(option, f"{member_id!r}: {problem}")
