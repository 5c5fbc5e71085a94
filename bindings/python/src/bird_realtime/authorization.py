"""Serves the library's authorization requests with the program's authorizer functions."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any, Callable

from . import _abi
from ._native import Native, text_argument
from .errors import AuthorizationError, InvalidArgument

logger = logging.getLogger("bird_realtime")

Authorizer = Callable[[str, str], Mapping[str, Any]]
MemberAuthorizer = Callable[[str], Mapping[str, Any]]
Report = Callable[[Exception, object], None]

_FIELDS = ("auth", "member_data", "shared_secret")


class Authorization:
    """Runs an authorizer for each request and answers it, whatever the function does: a request is never left open."""

    def __init__(
        self,
        native: Native,
        authorizer: Authorizer | None,
        member_authorizer: MemberAuthorizer | None,
        report: Report,
    ) -> None:
        self._native = native
        self._authorizer = authorizer
        self._member_authorizer = member_authorizer
        self._report = report

    def answer(self, question: _abi.QuestionDetail) -> None:
        connection_id = (question.connection_id or b"").decode()
        channel_name = (question.channel_name or b"").decode()
        try:
            if question.request_kind == _abi.BIRD_REQUEST_AUTHORIZE_CHANNEL and self._authorizer is not None:
                what, result = "authorizer", self._authorizer(channel_name, connection_id)
            elif question.request_kind == _abi.BIRD_REQUEST_AUTHORIZE_MEMBER and self._member_authorizer is not None:
                what, result = "member_authorizer", self._member_authorizer(connection_id)
            else:
                raise AuthorizationError(f"this client cannot answer requests of kind {question.request_kind}")
            problem = unusable(result)
        except Exception as error:
            # A denial is an answer, not a defect of the function.
            if not isinstance(error, AuthorizationError):
                self._report(error, channel_name or "signin")
            text = str(error) or type(error).__name__
            status = self._native.refuse(question.request, text, is_transient(error))
        else:
            if problem is None:
                status = self._native.answer(
                    question.request, result["auth"], result.get("member_data"), result.get("shared_secret")
                )
            else:
                status = self._native.refuse(question.request, f"the {what} returned {problem}", False)
        if status != _abi.BIRD_OK:
            logger.warning(
                "The authorization of %s was not accepted: %s",
                channel_name or "the member",
                _abi.STATUS_NAMES.get(status, status),
            )


def unusable(result: object) -> str | None:
    """What is wrong with the result of an authorizer; None if nothing is."""
    if inspect.iscoroutine(result):
        result.close()
        return "a coroutine; it must be a plain function that returns a dict with 'auth'"
    if not isinstance(result, Mapping):
        return f"{type(result).__name__}; it must return a dict with 'auth'"
    if not result.get("auth"):
        return "no 'auth' string"
    for field in _FIELDS:
        value = result.get(field)
        if value is None:
            continue
        if not isinstance(value, str):
            return f"{type(value).__name__} as '{field}'; it must be the str that the backend gave, unchanged"
        try:
            text_argument(value, field)
        except InvalidArgument as error:
            return f"an unusable answer: {error}"
    return None


def is_transient(error: Exception) -> bool:
    """Whether the library should ask again by itself: what the exception says, else for failures of the network."""
    said = getattr(error, "retriable", None)
    if isinstance(said, bool):
        return said
    return isinstance(error, OSError) and not isinstance(error, PermissionError)
