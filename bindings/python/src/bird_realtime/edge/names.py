"""Names and kinds: what a channel, an event and a member may be called (Bird protocol §1, §17)."""

from __future__ import annotations

import re
from enum import Enum

CHANNEL_NAME_LIMIT_CHARS = 164
EVENT_NAME_LIMIT_CHARS = 200
MEMBER_ID_LIMIT_CHARS = 128

MEMBER_CHANNEL_PREFIX = "#server-to-user-"
CLIENT_EVENT_PREFIX = "client-"
RESERVED_EVENT_PREFIXES = ("bird:", "bird_internal:", CLIENT_EVENT_PREFIX)

_CHANNEL_NAME = re.compile(r"[A-Za-z0-9_=@,.;-]+")
_MEMBER_ID = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@-]+")


class Kind(Enum):
    """The kind of a channel; its name prefix alone decides it."""

    PUBLIC = ""
    PRIVATE = "private-"
    PRESENCE = "presence-"
    ENCRYPTED = "private-encrypted-"
    MEMBER = MEMBER_CHANNEL_PREFIX


# Longest prefix first, so that an encrypted channel is not taken for a private one.
_PREFIXED_KINDS = (Kind.ENCRYPTED, Kind.PRESENCE, Kind.PRIVATE, Kind.MEMBER)


def kind_of(channel: str) -> Kind:
    """The kind of the channel called `channel`."""
    return next((kind for kind in _PREFIXED_KINDS if channel.startswith(kind.value)), Kind.PUBLIC)


def channel_problem(name: str) -> str | None:
    """Why `name` cannot be an application channel, or None."""
    if not 1 <= len(name) <= CHANNEL_NAME_LIMIT_CHARS:
        return f"a channel name has 1 to {CHANNEL_NAME_LIMIT_CHARS} characters, not {len(name)}"
    if not _CHANNEL_NAME.fullmatch(name):
        return "a channel name consists of letters, digits and _ - = @ , . ;"
    return None


def event_problem(name: str) -> str | None:
    """Why `name` cannot be the name of an event, or None."""
    if not 1 <= len(name) <= EVENT_NAME_LIMIT_CHARS:
        return f"an event name has 1 to {EVENT_NAME_LIMIT_CHARS} characters, not {len(name)}"
    if any("\ud800" <= character <= "\udfff" for character in name):
        return "an event name has no half of a surrogate pair"
    return None


def published_event_problem(name: str) -> str | None:
    """Why a server cannot publish an event called `name`, or None."""
    reserved = next((prefix for prefix in RESERVED_EVENT_PREFIXES if name.startswith(prefix)), None)
    if reserved is not None:
        return f"the prefix {reserved} is reserved"
    return event_problem(name)


def member_id_problem(member_id: str) -> str | None:
    """Why `member_id` cannot name a member, or None."""
    if not 1 <= len(member_id) <= MEMBER_ID_LIMIT_CHARS:
        return f"a member id has 1 to {MEMBER_ID_LIMIT_CHARS} characters, not {len(member_id)}"
    if not _MEMBER_ID.fullmatch(member_id):
        return "a member id consists of letters, digits and . _ ~ ! $ & ' ( ) * + , ; = : @ -"
    return None
