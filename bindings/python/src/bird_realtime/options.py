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

    region: Text
    """resolves the edge host: "us1" or "eu1"; one of region and ws_host is required"""
    ws_host: Text
    """host[:port] of an edge instead of a region"""
    allow_insecure: Flag
    """plaintext for exactly localhost, 127.0.0.1 and [::1]"""
    address: Text
    """connect to this literal address instead of resolving the host name"""
    auth_endpoint: Text
    """URL that authorizes private and presence channels by POST"""
    member_auth_endpoint: Text
    """URL that authorizes signin by POST"""
    ca_file: Path
    """trust the CA certificates of this file instead of the system's"""
    ca_path: Path
    """the same for a directory"""
    client_cert_file: Path
    """client certificate (PEM)"""
    client_key_file: Path
    """its key (PEM, no passphrase)"""
    tls_min_version: Text
    """the oldest version spoken, "1.2" or "1.3"; 1.2 unless set"""
    tls_verify_name: Text
    """the name or address that the edge's certificate must be for, instead of the host's; also sent as SNI"""
    proxy: Text
    """http://, socks5:// or socks5h:// URL; "" = none; unset = environment"""
    connect_timeout_ms: Number
    """from the start of an attempt to the handshake"""
    auth_timeout_ms: Number
    """one authorization"""
    answer_timeout_ms: Number
    """answer of the edge to a subscribe or signin"""
    message_timeout_ms: Number
    """a message must be complete this long after its first byte"""
    activity_timeout_ms: Number
    """silence before a ping"""
    pong_timeout_ms: Number
    """silence after a ping before the connection counts as dead"""
    backoff_base_ms: Number
    """first window of reconnects"""
    backoff_max_ms: Number
    """largest window of reconnects"""
    flap_guard: Flag
    """slows reconnects of connections that keep dying young"""
    message_bytes_max: Number
    """larger messages close the connection"""
    client_event_bytes_max: Number
    """larger client events are refused"""
    outbound_bytes_max: Number
    """bytes waiting to be written before QueueFull"""
    queue_bytes_max: Number
    """bytes not yet delivered, beyond which overflow decides"""
    queue_records_max: Number
    """the same in records"""
    overflow: Text
    """when handlers are slow: "pause" (reading), "drop-oldest" or "drop-newest" (application events)"""


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
