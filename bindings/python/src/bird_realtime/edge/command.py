"""`bird-realtime edge`: the edge as a program. Importing this needs no aiohttp; running it does."""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import json
import os
import signal
import sys
from typing import Any

from .config import App, ConfigError, EdgeConfig

SUMMARY = "Run a local edge: WebSocket, REST API, auth backend and test controls on one port."

_DEFAULTS = EdgeConfig()
_FLAGS = {
    "client_events": "let clients send client- events",
    "connection_counting": "count connections per channel over REST",
    "connection_count_events": "push connection counts to subscribers (needs --connection-counting)",
    "watchlist_events": "tell connections who of their watchlist comes online and goes offline",
    "authorized_connections": "close connections that prove nothing by --authorized-deadline",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the edge."""
    add = parser.add_argument
    add("--host", default=_DEFAULTS.host, help="address to listen on (default %(default)s)")
    add("--port", type=int, default=8080, help="port to listen on, 0 for any free one (default %(default)s)")
    add("--app-key", default=_DEFAULTS.app_key, help="app key (default %(default)s)")
    add("--app-secret", default=_DEFAULTS.app_secret, help="app secret (default %(default)s)")
    add("--app-id", default=_DEFAULTS.app.app_id, help="app id, rap_… (default %(default)s)")
    add("--api-key", help="API key that the REST API asks for (default: any is accepted)")
    add(
        "--encryption-master-key",
        type=_base64,
        metavar="BASE64",
        help="key for the secrets of encrypted channels, 32 bytes (default: a new one, printed at start)",
    )
    add(
        "--member",
        action="append",
        default=[],
        metavar="ID[=NAME]",
        help="a member that the auth backend knows; repeatable, the first is the default (default: anyone)",
    )
    add(
        "--activity-timeout",
        type=int,
        default=_DEFAULTS.activity_timeout_s,
        metavar="SECONDS",
        help="activity timeout in the handshake (default %(default)s)",
    )
    add(
        "--authorized-deadline",
        type=float,
        default=_DEFAULTS.authorized_deadline_s,
        metavar="SECONDS",
        help="deadline of --authorized-connections (default %(default)s)",
    )
    for name, help_ in _FLAGS.items():
        add(f"--{name.replace('_', '-')}", action="store_true", help=f"app flag: {help_}")
    add("--suspended", action="store_true", help="the app is suspended: refuse connections with 4003")
    add("--connection-quota", type=int, metavar="N", help="refuse more open connections with 4004")
    add(
        "--watch",
        action="append",
        default=[],
        metavar="ID=OTHER",
        help="has the auth backend put member OTHER on the watchlist of member ID; repeatable",
    )
    add(
        "--watchlist-limit-members",
        type=int,
        default=_DEFAULTS.watchlist_limit_members,
        metavar="N",
        help="members on a watchlist; of a longer one the first are kept, and error 4302 says so (default %(default)s)",
    )
    add(
        "--client-events-per-s",
        type=int,
        default=_DEFAULTS.client_events_per_s,
        metavar="N",
        help="client events of a connection in a second; more are refused with 4301 (default %(default)s)",
    )
    add(
        "--client-event-sender-key",
        default=_DEFAULTS.client_event_sender_key,
        metavar="KEY",
        help="top-level key of client events on presence channels for the sender's member id (default %(default)s)",
    )
    add(
        "--cache-ttl",
        type=float,
        default=_DEFAULTS.cache_ttl_s,
        metavar="SECONDS",
        help="how long cache channels keep their last event (default, and at most, %(default)s)",
    )
    add(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="lets browser pages of this origin use the edge, * of any; repeatable (default: this machine's only)",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients reach the edge; repeatable (default: loopback names and --host)",
    )
    add("--lenient", action="store_true", help="accept a double subscribe, ignore a needless unsubscribe")
    add("--plain-data", action="store_true", help="send data as plain JSON, not as a string of JSON")
    add("--tls-cert", metavar="FILE", help="certificate chain (PEM); the edge then speaks wss and https only")
    add("--tls-key", metavar="FILE", help="key of --tls-cert (PEM; default: in the same file)")
    add("--json", action="store_true", help="print one line of JSON when ready instead of the banner")


def run(options: argparse.Namespace) -> int:
    """Runs the edge until SIGINT or SIGTERM; the exit code."""
    try:
        asyncio.run(_serve(_config(options), as_json=options.json))
    except ConfigError as error:
        option = error.option if hasattr(options, error.option) else error.option.removesuffix("_s")
        return _fail(f"argument --{option.replace('_', '-')}: {error.problem}", code=2)
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        return _fail("needs aiohttp: pip install 'bird-realtime[edge]' on Python 3.10 or newer")
    except OSError as error:
        where = f"{options.host}:{options.port} (--host, --port)"
        return _fail(f"cannot listen on {where}: {error.strerror or error}")
    return 0


def _config(options: argparse.Namespace) -> EdgeConfig:
    app = App(
        app_id=options.app_id,
        connection_quota=options.connection_quota,
        status="suspended" if options.suspended else "active",
        **{name: getattr(options, name) for name in _FLAGS},
    )
    optional: dict[str, Any] = {}
    if options.encryption_master_key is not None:
        optional["encryption_master_key"] = options.encryption_master_key
    return EdgeConfig(
        host=options.host,
        port=options.port,
        app=app,
        app_key=options.app_key,
        app_secret=options.app_secret,
        api_key=options.api_key,
        members=dict(_member(text) for text in options.member),
        watchlists=_watchlists(options.watch),
        watchlist_limit_members=options.watchlist_limit_members,
        client_events_per_s=options.client_events_per_s,
        client_event_sender_key=options.client_event_sender_key,
        cache_ttl_s=options.cache_ttl,
        activity_timeout_s=options.activity_timeout,
        authorized_deadline_s=options.authorized_deadline,
        strict=not options.lenient,
        double_encoding=not options.plain_data,
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        allow_origins=options.allow_origin,
        allow_hosts=options.allow_host,
        **optional,
    )


def _member(text: str) -> tuple[str, dict[str, str]]:
    member_id, _, name = text.partition("=")
    return member_id, {"name": name or member_id}


def _watchlists(pairs: list[str]) -> dict[str, list[str]]:
    watchlists: dict[str, list[str]] = {}
    for text in pairs:
        member_id, _, other = text.partition("=")
        watchlists.setdefault(member_id, []).append(other)
    return watchlists


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise argparse.ArgumentTypeError("must be base64") from None


async def _serve(config: EdgeConfig, *, as_json: bool) -> None:
    from .server import Edge

    edge = Edge(config)
    await edge.start()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stdout.write(f"{json.dumps(_facts(edge.config))}\n" if as_json else _banner(edge.config))
    sys.stdout.flush()
    await stop.wait()
    await edge.stop()


def _facts(config: EdgeConfig) -> dict[str, Any]:
    return {
        "host": config.host,
        "port": config.port,
        "ws_host": config.ws_host,
        "ws_url": config.ws_url,
        "base_url": config.base_url,
        "auth_endpoint": config.auth_endpoint,
        "member_auth_endpoint": config.member_auth_endpoint,
        "controls_url": config.controls_url,
        "app_key": config.app_key,
        "app_secret": config.app_secret,
        "app_id": config.app.app_id,
        "encryption_master_key": config.encryption_master_key_base64,
        "pid": os.getpid(),
    }


def _banner(config: EdgeConfig) -> str:
    on = [name.replace("_", "-") for name in _FLAGS if getattr(config.app, name)]
    off = [name.replace("_", "-") for name in _FLAGS if not getattr(config.app, name)]
    rows = {
        "WebSocket": config.ws_url,
        "REST API": f"{config.base_url}  (API key: {config.api_key or 'any'})",
        "auth": config.auth_endpoint,
        "member auth": config.member_auth_endpoint,
        "controls": config.controls_url,
        "app key": config.app_key,
        "app secret": config.app_secret,
        "app id": config.app.app_id,
        "master key": config.encryption_master_key_base64,
        "members": ", ".join(config.members) or "anyone (Authorization: Bearer <member id>)",
        "app flags": f"on: {', '.join(on) or 'none'}; off: {', '.join(off) or 'none'}",
    }
    lines = [f"  {label:<12} {value}" for label, value in rows.items()]
    return "\n".join(["The edge is ready. Ctrl-C ends it.", *lines, ""])


def _fail(problem: str, code: int = 1) -> int:
    sys.stderr.write(f"bird-realtime edge: {problem}\n")
    return code
