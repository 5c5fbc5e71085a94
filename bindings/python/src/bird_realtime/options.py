"""The options of the library, by the names of the header's option keys."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Optional, TypedDict, Union, get_args, get_type_hints

from . import _abi
from .errors import InvalidArgument

Value = Union[str, int]

Text = Optional[str]
Path = Union[str, "os.PathLike[str]", None]
Number = Optional[int]
Flag = Optional[bool]


class Options(TypedDict, total=False):
    """Each is the header's option of the same name; None leaves its default."""

    # Written by scripts/write-options from the table of the library.
    region: Text
    """Where the edge is: its host name follows from it. One of region and ws_host is required."""
    ws_host: Text
    """An edge of another name instead of a region: one of your own, or the local one."""
    dialect: Text
    """For servers that speak Pusher Channels protocol 7 instead of Bird's: names, keys and authorization requests
    are theirs, see docs/pusher.md. (default bird)"""
    allow_insecure: Flag
    """Lets tests do without certificates: plaintext for exactly localhost, 127.0.0.1 and [::1]; every other host
    gets TLS all the same. (default 0)"""
    address: Text
    """Connects to this address, also behind a proxy, where the name of the edge cannot or should not be
    resolved."""
    auth_endpoint: Text
    """Is asked by POST whether this connection may join a private or presence channel."""
    member_auth_endpoint: Text
    """Is asked by POST as which member this connection may sign in."""
    ca_file: Path
    """Trusts the CA certificates of this file instead of the system's: for a CA of your own. What cannot be read,
    here and below, is refused when the client is created."""
    ca_path: Path
    """The same for a directory of certificates under the names that OpenSSL gives them (openssl rehash)."""
    client_cert_file: Path
    """For edges and proxies that ask their clients for a certificate."""
    client_key_file: Path
    """The key of client_cert_file, unless that file has it too."""
    tls_min_version: Text
    """Refuses servers that speak only older versions of TLS. Unset: 1.2, or 1.3 where the machine's OpenSSL
    configuration demands it (MinProtocol)."""
    tls_verify_name: Text
    """The name that the edge's certificate must be for, and that is sent as SNI, where it is not the host's; the
    upgrade goes to the host all the same. Names outside ASCII in their xn-- form."""
    proxy: Text
    """The way out where there is no direct one; URL with [USER:PASSWORD@]HOST[:PORT], user and password percent-
    encoded. Unset: https_proxy, all_proxy and no_proxy as they are when the client is created."""
    connect_timeout_ms: Number
    """A host that swallows packets: an attempt ends this long after its start unless the handshake has come. (ms,
    default 15000)"""
    auth_timeout_ms: Number
    """An authorizer that hangs: one authorization, POST or request record, may take this long. (ms, default
    10000)"""
    answer_timeout_ms: Number
    """An edge that does not answer a subscribe or signin: it counts as failed for now this long after the frame was
    written. (ms, default 30000)"""
    message_timeout_ms: Number
    """An edge that stops in the middle of a message: it must be complete this long after its first byte. (ms,
    default 60000)"""
    preset: Text
    """Settings that belong together, which later ones override. staged, as XMPP clients do: reconnect staged with
    the default reconnect_stages, activity_timeout_ms 20000, pong_timeout_ms 10000, pong_misses_max 2. default:
    these as they are when nothing is set. (default default, live)"""
    activity_timeout_ms: Number
    """Connections that die without a word: after so much silence a ping is sent. Unset: the edge's value, 120000
    until it names one; the edge's is used too if it is smaller. (ms, live)"""
    pong_timeout_ms: Number
    """Silence after a ping before it counts as missed. (ms, default 30000, live)"""
    pong_misses_max: Number
    """Links that lose packets: pings missed in a row, each sent as soon as the one before is missed, before the
    connection counts as dead and the next attempt begins. (pings, default 1, live)"""
    reconnect: Text
    """How long to wait before each attempt. jitter: drawn from windows that double, so that many clients do not
    come back in step; fixed: reconnect_delay_ms; staged: reconnect_stages. (default jitter, live)"""
    backoff_base_ms: Number
    """Keeps many clients from coming back at once: the first wait of jitter is drawn between 0 and this, and each
    failed attempt doubles it. Authorizers that fail are asked again in the same way. (ms, default 1000, live)"""
    backoff_max_ms: Number
    """The longest wait that is drawn: how soon clients are back after a long outage. (ms, default 30000, live)"""
    reconnect_delay_ms: Number
    """The wait of reconnect fixed. (ms, default 3000, live)"""
    reconnect_stages: Text
    """The waits of reconnect staged, for people who wait in front of a screen: soon at first, then patient. After
    the last stage the schedule begins again. (default 5x3000,5x9000,5x15000, live)"""
    reconnect_attempts_max: Number
    """For programs that would rather ask their user: attempts in a row, made or refused, that are in vain before
    the client gives up until it is told to connect. 0: never. (attempts, default 0, live)"""
    flap_guard: Flag
    """Slows reconnects of connections that keep dying young, whatever their close code and the policy say. (default
    1, live)"""
    network_watch: Flag
    """Connections that a change of the network has cut off, and waits that it has made needless: listens to the
    kernel (rtnetlink), pings at once when the default route or the connection's own address has gone, and tries at
    once to connect when there is one again. (default 1)"""
    message_bytes_max: Number
    """Bounds what the edge can make this process allocate: a larger message closes the connection with 1009.
    (bytes, default 16777216)"""
    client_event_bytes_max: Number
    """The edge closes connections for client events that are too large: larger ones are refused here. (bytes,
    default 10240)"""
    outbound_bytes_max: Number
    """A network that is slower than the program: more bytes waiting to be written are refused (full). (bytes,
    default 1048576)"""
    queue_bytes_max: Number
    """Bounds the memory of a program that does not keep up (QUEUE and THREAD): bytes of records not yet consumed,
    beyond which overflow decides. (bytes, default 8388608)"""
    queue_records_max: Number
    """The same in records. (records, default 65536)"""
    overflow: Text
    """For a program that does not keep up: stop reading the socket, which loses nothing while the edge keeps the
    connection, or drop application events, the oldest or the newest. Without effect in LOOP, which has no queue.
    (default pause)"""
    log_level: Text
    """What the program itself is told of what the library does, by its log handler or, without one, by log records.
    Unset: info for a handler, else off. (live)"""
    log_areas: Text
    """Keeps every log to what is looked into: the areas that entries come from. Verbose wire is an entry for each
    message. (default all, live)"""
    log_console: Text
    """What goes to standard error, a line an entry. (default off, live)"""
    log_file: Path
    """A log that is there when something has gone wrong: a file for entries, made with mode 0600, that begins anew
    when it is old or large; the older ones are log_file.1, log_file.2 and so on. Several processes may share it."""
    log_file_level: Text
    """What goes to log_file. (default info, live)"""
    log_file_bytes_max: Number
    """Keeps a log from filling the disk: a file that would become larger begins anew. 0: no limit. (bytes, default
    10485760)"""
    log_file_age_max_ms: Number
    """A file for each day, or whatever time: an entry that comes this long after a file's first begins a new one.
    0: no limit. (ms, default 86400000)"""
    log_files_kept: Number
    """How far the log goes back: files that are kept, the newest included. (files, default 7)"""
    # The end of what is written.


_HINTS = {key: get_args(hint) for key, hint in get_type_hints(Options).items()}


def checked(options: Mapping[str, object]) -> dict[str, Value]:
    """The options that are set, each of its type. InvalidArgument names one that is unknown or of another type."""
    values: dict[str, Value] = {}
    for key, value in options.items():
        if key not in _HINTS:
            raise _unknown(key)
        if value is not None:
            values[key] = _typed(key, value)
    return values


def _typed(key: str, value: object) -> Value:
    hints = _HINTS[key]
    if bool in hints and isinstance(value, bool):
        return value
    if int in hints and isinstance(value, int) and not isinstance(value, bool):
        return value
    if str in hints and isinstance(value, str):
        return value
    if len(hints) > 2 and isinstance(value, os.PathLike):
        return os.fsdecode(value)
    wanted = "True or False" if bool in hints else "an int" if int in hints else "a str"
    raise InvalidArgument(
        f"option {key} must be {wanted}, not {type(value).__name__}", status=_abi.BIRD_ERR_VALUE, field=key
    )


def _unknown(key: str) -> InvalidArgument:
    near = difflib.get_close_matches(key, _HINTS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return InvalidArgument(f"unknown option {key}{hint}", status=_abi.BIRD_ERR_OPTION, field=key)
