"""Signatures of channels and members, and the keys of encrypted channels (Bird protocol §9.4, §11, §21)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping


def channel_string(connection_id: str, channel: str, member_data: str | None = None) -> str:
    """What is signed to let a connection subscribe to `channel`; `member_data` for presence only."""
    signed = f"{connection_id}:{channel}"
    return signed if member_data is None else f"{signed}:{member_data}"


def signin_string(connection_id: str, member_data: str) -> str:
    """What is signed to let a connection sign in."""
    return f"{connection_id}::member::{member_data}"


def signature(app_secret: str, signed: str) -> str:
    """The lower-case hexadecimal HMAC-SHA256 of `signed`."""
    # A lone surrogate cannot have been signed by a backend; encoding it any way at all makes the check fail.
    return hmac.new(app_secret.encode(), signed.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()


def auth_string(app_key: str, app_secret: str, signed: str) -> str:
    """The `auth` field that proves `signed`."""
    return f"{app_key}:{signature(app_secret, signed)}"


def is_valid(auth: str, signed: str, live_keys: Mapping[str, str]) -> bool:
    """Whether `auth` proves `signed` under one of `live_keys` (app key to app secret)."""
    app_key, _, digest = auth.partition(":")
    app_secret = live_keys.get(app_key)
    if app_secret is None:
        return False
    expected = signature(app_secret, signed)
    return hmac.compare_digest(expected.encode(), digest.encode(errors="surrogatepass"))


def shared_secret(channel: str, master_key: bytes) -> str:
    """The base64 key of the encrypted channel `channel`, derived from the app's master key."""
    return base64.b64encode(hashlib.sha256(channel.encode() + master_key).digest()).decode()
