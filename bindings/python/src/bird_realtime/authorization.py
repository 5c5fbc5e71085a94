"""Serves what the library asks the program: authorizations, headers for them, and leave to reconnect."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Callable, NamedTuple, Union

from . import _abi, logs
from ._native import Native
from .errors import AuthorizationError, BirdRealtimeError, InvalidArgument

logger = logs.package

_Answer = Union[Mapping[str, Any], Awaitable[Mapping[str, Any]]]
_Decision = Union[bool, float]

Authorizer = Callable[[str, str], _Answer]
MemberAuthorizer = Callable[[str], _Answer]
HeaderProvider = Callable[[str], _Answer]
MayReconnect = Callable[[int, BirdRealtimeError], Union[_Decision, Awaitable[_Decision]]]
Report = Callable[[Exception, object], None]

#: what a dialect calls the data that the backend signed, for a channel and for a signin; ours are taken in each
_OWN_KEYS = {"pusher": ("channel_data", "user_data")}
_MEMBER_DATA = "member_data"
_PRESENCE = "presence-"


class Hooks(NamedTuple):
    """The program's functions, plain or async, by the names of the library's options; it asks only those there are."""

    authorizer: Authorizer | None = None
    member_authorizer: MemberAuthorizer | None = None
    header_provider: HeaderProvider | None = None
    may_reconnect: MayReconnect | None = None

    def options(self) -> dict[str, bool]:
        """What the library has to be told. InvalidArgument names a hook that is no function."""
        given = {key: hook for key, hook in self._asdict().items() if hook is not None}
        for key, hook in given.items():
            if not callable(hook):
                raise InvalidArgument(f"{key} must be a function, not {hook!r}", field=key)
        return dict.fromkeys(given, True)


class Requests:
    """Runs a hook for each request and answers it, whatever the function does: a request is never left open."""

    def __init__(self, native: Native, hooks: Hooks, report: Report, dialect: str = "bird") -> None:
        self._native = native
        self._hooks = hooks
        self._report = report
        self._channel_data, self._identity = _OWN_KEYS.get(dialect, (_MEMBER_DATA, _MEMBER_DATA))

    def answer(self, question: _abi.QuestionDetail) -> None:
        request: int = question.request
        is_reconnect = question.request_kind == _abi.BIRD_REQUEST_RECONNECT
        subject = "reconnect" if is_reconnect else (question.channel_name or b"").decode() or "signin"
        interruption: BaseException | None = None
        try:
            try:
                answer = self._ask(question)
            except BaseException as error:
                if not isinstance(error, Exception):
                    interruption = error
                elif not isinstance(error, AuthorizationError):
                    # A denial is an answer, not a defect of the function.
                    self._report(error, subject)
                if is_reconnect:
                    # A defect must not keep the program offline.
                    answer = partial(self._native.proceed, request, 0)
                else:
                    text = str(error) or type(error).__name__
                    answer = partial(self._native.refuse, request, text, is_transient(error))
            try:
                answer()
            except InvalidArgument as error:
                self._native.refuse(request, f"an unusable answer: {error}", False)
        except BirdRealtimeError as error:
            logger.warning("The answer for %s was not accepted: %s", subject, error)
        if interruption is not None:
            raise interruption

    def _ask(self, question: _abi.QuestionDetail) -> Callable[[], None]:
        """The answer that the hook's result is."""
        connection_id = (question.connection_id or b"").decode()
        channel_name = (question.channel_name or b"").decode()
        native, hooks, request, kind = self._native, self._hooks, question.request, question.request_kind
        within_s = question.deadline_ms / 1000
        if kind == _abi.BIRD_REQUEST_AUTHORIZE_CHANNEL and hooks.authorizer is not None:
            result = _finish(hooks.authorizer(channel_name, connection_id), within_s)
            key = self._channel_data
            member_data = _check_authorization(result, "authorizer", key, is_needed=False)
            unknown = _unknown(result, key)
            if member_data is None and unknown and channel_name.startswith(_PRESENCE):
                raise _unusable("authorizer", f"no {key!r} string{unknown}")
        elif kind == _abi.BIRD_REQUEST_AUTHORIZE_MEMBER and hooks.member_authorizer is not None:
            result = _finish(hooks.member_authorizer(connection_id), within_s)
            member_data = _check_authorization(result, "member_authorizer", self._identity, is_needed=True)
        elif kind == _abi.BIRD_REQUEST_HEADERS and hooks.header_provider is not None:
            result = _finish(hooks.header_provider((question.endpoint or b"").decode()), within_s)
            if not isinstance(result, Mapping):
                raise _unusable("header_provider", f"{type(result).__name__}; it must return a dict of headers")
            return partial(native.add_headers, request, result)
        elif kind == _abi.BIRD_REQUEST_RECONNECT and hooks.may_reconnect is not None:
            cause = native.failure(question.cause, _abi.BIRD_ERR_LOST)
            decision = _finish(hooks.may_reconnect(question.attempt, cause), within_s)
            if decision is False:
                return partial(native.refuse, request, "may_reconnect returned False", True)
            return partial(native.proceed, request, _delay_ms(decision))
        else:
            raise AuthorizationError(f"this client cannot answer requests of kind {kind}")
        return partial(native.authorize, request, result["auth"], member_data, result.get("shared_secret"))


def _finish(result: Any, within_s: float) -> Any:
    """The result of a plain function, or of an async one, which is run to its end here."""
    if not inspect.isawaitable(result):
        return result

    async def finish() -> Any:
        return await asyncio.wait_for(result, within_s)

    return asyncio.run(finish())


def _unusable(hook: str, problem: str) -> AuthorizationError:
    return AuthorizationError(f"the {hook} returned {problem}")


def _check_authorization(result: object, hook: str, key: str, *, is_needed: bool) -> str | None:
    """The data that the backend signed, under the dialect's own key or under ours."""
    if not isinstance(result, Mapping):
        raise _unusable(hook, f"{type(result).__name__}; it must return a dict with 'auth'")
    if not result.get("auth"):
        raise _unusable(hook, f"no 'auth' string{_unknown(result, key)}")
    for field in _known(key):
        value = result.get(field)
        if value is not None and not isinstance(value, str):
            raise _unusable(
                hook, f"{type(value).__name__} as '{field}'; it must be the str that the backend gave, unchanged"
            )
    member_data: str | None = result.get(key)
    if member_data is None:
        member_data = result.get(_MEMBER_DATA)
    if is_needed and not member_data:
        raise _unusable(hook, f"no {key!r} string{_unknown(result, key)}")
    return member_data


def _known(key: str) -> tuple[str, ...]:
    return ("auth", key, _MEMBER_DATA, "shared_secret")


def _unknown(result: Mapping[str, Any], key: str) -> str:
    """The keys that mean nothing here, for a message: one of them may be a misspelt one."""
    names = sorted(str(name) for name in result if name not in _known(key))
    return f"; unknown keys: {', '.join(map(repr, names))}" if names else ""


def _delay_ms(decision: object) -> int:
    if decision is True:
        return 0
    if isinstance(decision, (int, float)) and 0 <= decision <= 86_400:
        return round(decision * 1000)
    raise TypeError(f"may_reconnect returned {decision!r}; it must return True, False or seconds to wait (to 86400)")


def is_transient(error: BaseException) -> bool:
    """Whether the library should ask again by itself: what the exception says, else for failures of the network and for
    what is no failure of the function: Ctrl-C, or a cancellation."""
    said = getattr(error, "retriable", None)
    if isinstance(said, bool):
        return said
    if not isinstance(error, Exception):
        return True
    return isinstance(error, OSError) and not isinstance(error, PermissionError)
