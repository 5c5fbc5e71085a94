"""Faults that a test scripts: HTTP gone wrong, and answers on the wire that are late or never come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar


class Target(Enum):
    """The HTTP requests that can be made to fail."""

    UPGRADE = "upgrade"
    REST = "rest"
    AUTH = "auth"
    MEMBER_AUTH = "member_auth"


class Answer(Enum):
    """The answers on the wire that can be withheld or delayed."""

    HANDSHAKE = "handshake"
    PONG = "pong"
    SUBSCRIBE = "subscribe"
    SIGNIN = "signin"


@dataclass(frozen=True)
class HttpFault:
    """What happens to a request. First `delay_s` passes; then, unless `status` is None, this answer is sent.

    `hang` never answers. `wrong_signature` lets the auth backend answer with a signature that no key made.
    """

    delay_s: float = 0.0
    hang: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    wrong_signature: bool = False


@dataclass(frozen=True)
class AnswerFault:
    """Handles the request that asks for an answer only after `delay_s`, or never when it is None."""

    delay_s: float | None = None


_Fault = TypeVar("_Fault")


@dataclass
class _Scripted(Generic[_Fault]):
    fault: _Fault
    times: int | None


class Faults:
    """The faults in force. Each acts `times` times, or until it is cleared when `times` is None."""

    def __init__(self) -> None:
        self._http: dict[Target, _Scripted[HttpFault]] = {}
        self._answers: dict[tuple[Answer, str | None], _Scripted[AnswerFault]] = {}

    def set_http(self, target: Target, fault: HttpFault, times: int | None = None) -> None:
        self._http[target] = _Scripted(fault, times)

    def set_answer(
        self, answer: Answer, fault: AnswerFault, channel: str | None = None, times: int | None = None
    ) -> None:
        self._answers[answer, channel] = _Scripted(fault, times)

    def take_http(self, target: Target) -> HttpFault | None:
        """The fault for this request, if any; counts it."""
        return _take(self._http, target)

    def take_answer(self, answer: Answer, channel: str | None = None) -> AnswerFault | None:
        """The fault for this answer, one for the channel before one for all; counts it."""
        if channel is not None:
            fault = _take(self._answers, (answer, channel))
            if fault is not None:
                return fault
        return _take(self._answers, (answer, None))

    def clear(self) -> None:
        self._http.clear()
        self._answers.clear()


_Key = TypeVar("_Key")


def _take(faults: dict[_Key, _Scripted[_Fault]], key: _Key) -> _Fault | None:
    scripted = faults.get(key)
    if scripted is None:
        return None
    if scripted.times is not None:
        scripted.times -= 1
        if scripted.times <= 0:
            del faults[key]
    return scripted.fault
