"""Authorizer functions: every request gets one answer, whatever the function does."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import AuthorizationError, BirdRealtime, _abi

from .batches import BatchMaker
from .fake_library import FakeLibrary


def ask(bird: BirdRealtime, kind: int, channel_name: bytes = b"private-a") -> None:
    batch = BatchMaker()
    detail = _abi.QuestionDetail(
        request_kind=kind, request=77, deadline_ms=1_000, connection_id=b"4242.1357", channel_name=channel_name
    )
    batch.add(_abi.BIRD_RECORD_REQUEST, detail=detail)
    bird._router.deliver(batch.decoded())


def test_a_channel(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    asked: list[tuple[str, str]] = []

    def authorizer(channel_name: str, connection_id: str) -> dict[str, str]:
        asked.append((channel_name, connection_id))
        return {"auth": "key:sig", "member_data": '{"member_id":"m_7"}', "shared_secret": "abc", "extra": "ignored"}

    ask(make_bird(thread=False, authorizer=authorizer), _abi.BIRD_REQUEST_AUTHORIZE_CHANNEL)
    assert asked == [("private-a", "4242.1357")]
    assert fake.answers == [("authorize", 77, b"key:sig", b'{"member_id":"m_7"}', b"abc")]


def test_a_member(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    asked: list[str] = []

    def member_authorizer(connection_id: str) -> dict[str, str]:
        asked.append(connection_id)
        return {"auth": "key:sig", "member_data": "{}"}

    ask(make_bird(thread=False, member_authorizer=member_authorizer), _abi.BIRD_REQUEST_AUTHORIZE_MEMBER, b"")
    assert asked == ["4242.1357"]
    assert fake.answers == [("authorize", 77, b"key:sig", b"{}", None)]


async def _coroutine(channel_name: str, connection_id: str) -> dict[str, str]:
    return {"auth": "key:sig"}


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("key:sig", "the authorizer returned str; it must return a dict with 'auth'"),
        (b"key:sig", "the authorizer returned bytes; it must"),
        (None, "the authorizer returned NoneType; it must"),
        ({}, "the authorizer returned no 'auth' string"),
        ({"auth": ""}, "the authorizer returned no 'auth' string"),
        ({"auth": 5}, "the authorizer returned int as 'auth'; it must be the str"),
        ({"auth": "a", "member_data": {"member_id": "m"}}, "the authorizer returned dict as 'member_data'; it must be"),
        ({"auth": "a\0b"}, "the authorizer returned an unusable answer: auth contains a NUL"),
        ({"auth": "a", "shared_secret": "\ud800"}, "the authorizer returned an unusable answer: shared_secret is not"),
    ],
)
def test_unusable_results(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], result: Any, problem: str) -> None:
    ask(make_bird(thread=False, authorizer=lambda channel_name, connection_id: result), 1)
    ((what, request, retriable, message),) = fake.answers
    assert (what, request, retriable) == ("fail", 77, False)
    assert message.decode().startswith(problem)


@pytest.mark.filterwarnings("error")
def test_a_coroutine_function(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    ask(make_bird(thread=False, authorizer=_coroutine), 1)
    ((what, _, retriable, message),) = fake.answers
    assert (what, retriable) == ("fail", False)
    assert b"returned a coroutine; it must be a plain function" in message


@pytest.mark.parametrize(
    ("error", "retriable", "is_reported"),
    [
        (AuthorizationError("not you"), False, False),
        (AuthorizationError("later", retriable=True), True, False),
        (KeyError("token"), False, True),
        (ConnectionResetError("reset"), True, True),
        (TimeoutError("slow"), True, True),
        (urllib.error.URLError("unreachable"), True, True),
        (PermissionError("no"), False, True),
    ],
)
def test_exceptions(
    fake: FakeLibrary,
    make_bird: Callable[..., BirdRealtime],
    error: Exception,
    retriable: bool,
    is_reported: bool,
) -> None:
    reported: list[tuple[Exception, object]] = []

    def authorizer(channel_name: str, connection_id: str) -> dict[str, str]:
        raise error

    bird = make_bird(
        thread=False, authorizer=authorizer, on_handler_error=lambda error, what: reported.append((error, what))
    )
    ask(bird, 1)
    assert fake.answers == [("fail", 77, retriable, str(error).encode())]
    assert reported == ([(error, "private-a")] if is_reported else [])


def test_a_request_nobody_can_answer(fake: FakeLibrary, bird: BirdRealtime) -> None:
    ask(bird, 99)
    assert fake.answers[0][:3] == ("fail", 77, False)


def test_a_late_answer_is_logged(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], caplog: pytest.LogCaptureFixture
) -> None:
    fake.statuses["bird_request_authorize"] = _abi.BIRD_ERR_ANSWERED
    ask(make_bird(thread=False, authorizer=lambda channel_name, connection_id: {"auth": "a"}), 1)
    assert "The authorization of private-a was not accepted: BIRD_ERR_ANSWERED" in caplog.text
