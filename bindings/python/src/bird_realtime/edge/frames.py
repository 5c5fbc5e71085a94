"""The messages of the wire (Bird protocol §3): frames from the edge and requests from a client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .jsontext import JSONTextError, dump, has_half_pair, object_members, parse


@dataclass(frozen=True)
class Frame:
    """A message from the edge. `data` is JSON text, or None when the frame has no data. `extra` are more top-level
    keys with their texts."""

    event: str
    channel: str | None = None
    data: str | None = None
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Request:
    """A message from a client. `data` is JSON text, or None when the frame had no data."""

    event: str
    channel: str | None
    data: str | None

    def fields(self) -> dict[str, Any]:
        """`data` as an object; raises RequestError when it is something else."""
        value = None if self.data is None else parse(self.data)
        if not isinstance(value, dict):
            raise RequestError(f"Expected parameter data to be a hash in {self.event}")
        return value

    def subject(self) -> str | None:
        """The channel that a subscribe names inside `data`, if it names one."""
        value = None if self.data is None else parse(self.data)
        name = value.get("channel") if isinstance(value, dict) else None
        return name if isinstance(name, str) else None


class RequestError(ValueError):
    """A message from a client that the edge refuses; `code` is what the error frame carries."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def error_frame(error: RequestError) -> Frame:
    """The channel-less frame that reports `error`."""
    return Frame("bird:error", data=dump({"code": error.code, "message": str(error)}))


def encode(frame: Frame, *, double_encoding: bool) -> bytes:
    """`frame` as the payload of a text message. With `double_encoding`, data travels as a string of JSON.

    `bird:error` always carries its data as an object.
    """
    parts = [f'"event":{dump(frame.event)}']
    if frame.channel is not None:
        parts.append(f'"channel":{dump(frame.channel)}')
    if frame.data is not None:
        as_string = double_encoding and frame.event != "bird:error"
        data = json.dumps(frame.data, ensure_ascii=False) if as_string else frame.data
        parts.append(f'"data":{data}')
    parts += (f"{dump(key)}:{dump(value)}" for key, value in frame.extra)
    return ("{" + ",".join(parts) + "}").encode()


def decode(text: str) -> Request:
    """The request in the text message `text`; raises RequestError."""
    try:
        members = object_members(text)
    except JSONTextError as error:
        raise RequestError(f"Could not parse the message: {error}") from None
    if any(has_half_pair(value) for value in members.values()):
        raise RequestError("The message has half of a surrogate pair")
    event = parse(members.get("event", "null"))
    channel = parse(members.get("channel", "null"))
    if not isinstance(event, str):
        raise RequestError("Expected a string event")
    return Request(event, channel if isinstance(channel, str) else None, members.get("data"))
