"""The program's hooks: every request gets one answer, whatever the function does."""

from __future__ import annotations

import asyncio
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import AuthorizationError, BirdRealtime, BirdRealtimeError, _abi

from .batches import BatchMaker
from .fake_library import FakeLibrary

Reported = list[tuple[Exception, object]]


def ask(bird: BirdRealtime, kind: int, channel_name: bytes = b"private-a", **more: Any) -> None:
    batch = BatchMaker()
    detail = _abi.QuestionDetail(
        **{"request_kind": kind, "request": 77, "deadline_ms": 1_000, "connection_id": b"4242.1357", **more},
        channel_name=channel_name,
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


@pytest.mark.parametrize(
    ("dialect", "key"), [("pusher", "channel_data"), ("pusher", "member_data"), ("bird", "member_data")]
)
def test_a_channel_by_the_keys_of_the_dialect(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], dialect: str, key: str
) -> None:
    bird = make_bird(thread=False, dialect=dialect, authorizer=lambda *_: {"auth": "a", key: "{}"})
    ask(bird, _abi.BIRD_REQUEST_AUTHORIZE_CHANNEL, b"presence-a")
    assert fake.answers == [("authorize", 77, b"a", b"{}", None)]


@pytest.mark.parametrize(
    ("dialect", "key"), [("pusher", "user_data"), ("pusher", "member_data"), ("bird", "member_data")]
)
def test_a_member_by_the_keys_of_the_dialect(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], dialect: str, key: str
) -> None:
    bird = make_bird(thread=False, dialect=dialect, member_authorizer=lambda _: {"auth": "a", key: "{}"})
    ask(bird, _abi.BIRD_REQUEST_AUTHORIZE_MEMBER, b"")
    assert fake.answers == [("authorize", 77, b"a", b"{}", None)]


@pytest.mark.parametrize(
    ("dialect", "channel_name", "result", "problem"),
    [
        (
            "pusher",
            b"presence-a",
            {"auth": "a", "chanel_data": "{}"},
            "no 'channel_data' string; unknown keys: 'chanel_data'",
        ),
        (
            "bird",
            b"presence-a",
            {"auth": "a", "channel_data": "{}"},
            "no 'member_data' string; unknown keys: 'channel_data'",
        ),
        ("bird", b"private-a", {"signature": "a", "b": 1}, "no 'auth' string; unknown keys: 'b', 'signature'"),
        ("pusher", b"private-a", {"auth": "a", "channel_data": {}}, "dict as 'channel_data'; it must be"),
    ],
)
def test_unknown_keys_are_named(
    fake: FakeLibrary,
    make_bird: Callable[..., BirdRealtime],
    dialect: str,
    channel_name: bytes,
    result: Any,
    problem: str,
) -> None:
    ask(make_bird(thread=False, dialect=dialect, authorizer=lambda *_: result), 1, channel_name)
    ((what, _, retriable, message),) = fake.answers
    assert (what, retriable) == ("fail", False)
    assert message.decode().startswith(f"the authorizer returned {problem}")


def test_a_member_without_data(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird(thread=False, dialect="pusher", member_authorizer=lambda _: {"auth": "a", "user_date": "{}"})
    ask(bird, _abi.BIRD_REQUEST_AUTHORIZE_MEMBER, b"")
    assert fake.answers[0][3].startswith(
        b"the member_authorizer returned no 'user_data' string; unknown keys: 'user_date'"
    )


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
        ({"auth": "a\0b"}, "an unusable answer: auth contains a NUL"),
        ({"auth": "a", "shared_secret": "\ud800"}, "an unusable answer: shared_secret is not"),
    ],
)
def test_unusable_results(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], result: Any, problem: str) -> None:
    ask(make_bird(thread=False, authorizer=lambda channel_name, connection_id: result), 1)
    ((what, request, retriable, message),) = fake.answers
    assert (what, request, retriable) == ("fail", 77, False)
    assert message.decode().startswith(problem)


@pytest.mark.filterwarnings("error")
def test_async_functions(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    async def authorizer(channel_name: str, connection_id: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"auth": f"{channel_name} {connection_id}"}

    async def header_provider(endpoint: str) -> dict[str, str]:
        return {"x-token": endpoint}

    async def may_reconnect(attempt: int, cause: BirdRealtimeError) -> float:
        return attempt / 2

    bird = make_bird(thread=False, authorizer=authorizer, header_provider=header_provider, may_reconnect=may_reconnect)
    ask(bird, _abi.BIRD_REQUEST_AUTHORIZE_CHANNEL)
    ask(bird, _abi.BIRD_REQUEST_HEADERS, endpoint=b"https://a.test/")
    ask(bird, _abi.BIRD_REQUEST_RECONNECT, attempt=3)
    assert fake.answers == [
        ("authorize", 77, b"private-a 4242.1357", None, None),
        ("headers", 77, {b"x-token": b"https://a.test/"}),
        ("proceed", 77, 1_500),
    ]


@pytest.mark.filterwarnings("error")
def test_an_async_function_that_hangs_ends_at_the_deadline(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]
) -> None:
    was_cancelled: list[bool] = []

    async def authorizer(channel_name: str, connection_id: str) -> dict[str, str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.append(True)
            raise
        return {}

    ask(make_bird(thread=False, authorizer=authorizer), 1, deadline_ms=20)
    assert was_cancelled == [True]
    assert fake.answers[0][:2] == ("fail", 77)


def test_headers(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    asked: list[str] = []

    def header_provider(endpoint: str) -> dict[str, str]:
        asked.append(endpoint)
        return {"authorization": "Bearer 1", "x-more": ""}

    bird = make_bird(thread=False, header_provider=header_provider)
    ask(bird, _abi.BIRD_REQUEST_HEADERS, endpoint=b"https://a.test/bird/auth")
    assert asked == ["https://a.test/bird/auth"]
    assert fake.answers == [("headers", 77, {b"authorization": b"Bearer 1", b"x-more": b""})]


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (None, "the header_provider returned NoneType; it must return a dict of headers"),
        (["authorization"], "the header_provider returned list; it must"),
        ({"x-token": 5}, "an unusable answer: the header x-token must be a str, not int"),
        ({5: "x"}, "an unusable answer: a header's name must be a str, not int"),
        ({"x-token": "secret\0"}, "an unusable answer: the header x-token contains a NUL character"),
    ],
)
def test_unusable_headers(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], result: Any, problem: str) -> None:
    ask(make_bird(thread=False, header_provider=lambda endpoint: result), _abi.BIRD_REQUEST_HEADERS)
    ((what, request, retriable, message),) = fake.answers
    assert (what, request, retriable) == ("fail", 77, False)
    assert message.decode().startswith(problem)
    assert "secret" not in message.decode()


def test_headers_that_the_library_refuses(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    fake.statuses["bird_request_headers"] = _abi.BIRD_ERR_ARGUMENT
    ask(make_bird(thread=False, header_provider=lambda endpoint: {"a b": "c"}), _abi.BIRD_REQUEST_HEADERS)
    assert [answer[0] for answer in fake.answers] == ["headers", "fail"]


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        (True, ("proceed", 77, 0)),
        (0, ("proceed", 77, 0)),
        (2.5, ("proceed", 77, 2_500)),
        (86_400, ("proceed", 77, 86_400_000)),
    ],
)
def test_leave_to_reconnect(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], decision: Any, answer: tuple[object, ...]
) -> None:
    asked: list[tuple[int, BirdRealtimeError]] = []

    def may_reconnect(attempt: int, cause: BirdRealtimeError) -> Any:
        asked.append((attempt, cause))
        return decision

    ask(make_bird(thread=False, may_reconnect=may_reconnect), _abi.BIRD_REQUEST_RECONNECT, b"", attempt=4)
    ((attempt, cause),) = asked
    assert (attempt, cause.status) == (4, _abi.BIRD_ERR_LOST)
    assert fake.answers == [answer]


def test_no_leave_to_reconnect(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    ask(make_bird(thread=False, may_reconnect=lambda attempt, cause: False), _abi.BIRD_REQUEST_RECONNECT, b"")
    assert fake.answers[0][:2] == ("fail", 77)


@pytest.mark.parametrize("decision", [None, "no", -1, 86_401, float("nan"), ValueError("broken")])
def test_a_broken_hook_does_not_keep_the_client_offline(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], decision: Any
) -> None:
    reported: Reported = []

    def may_reconnect(attempt: int, cause: BirdRealtimeError) -> Any:
        if isinstance(decision, Exception):
            raise decision
        return decision

    bird = make_bird(
        thread=False, may_reconnect=may_reconnect, on_handler_error=lambda error, what: reported.append((error, what))
    )
    ask(bird, _abi.BIRD_REQUEST_RECONNECT, b"")
    assert fake.answers == [("proceed", 77, 0)]
    ((error, what),) = reported
    assert what == "reconnect"
    assert "broken" in str(error) or "may_reconnect returned" in str(error)


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
    reported: Reported = []

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
    assert "The answer for private-a was not accepted: status -18" in caplog.text
