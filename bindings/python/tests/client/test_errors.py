from __future__ import annotations

import pytest

import bird_realtime
from bird_realtime import (
    AuthorizationError,
    BirdRealtimeError,
    Closed,
    ConnectionFailed,
    DecryptionError,
    GaveUp,
    IdentityMissing,
    InvalidArgument,
    MessageLost,
    QueueFull,
    TimedOut,
    _abi,
    errors,
)


def test_one_tree() -> None:
    exported = [getattr(bird_realtime, name) for name in bird_realtime.__all__]
    classes = [each for each in exported if isinstance(each, type) and issubclass(each, BaseException)]
    assert len(classes) == 18
    assert all(issubclass(each, BirdRealtimeError) for each in classes)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (_abi.BIRD_ERR_OPTION, InvalidArgument),
        (_abi.BIRD_ERR_FULL, QueueFull),
        (_abi.BIRD_ERR_CLOSED, Closed),
        (_abi.BIRD_ERR_REFUSED, ConnectionFailed),
        (_abi.BIRD_ERR_AUTH, AuthorizationError),
        (_abi.BIRD_ERR_GAVE_UP, GaveUp),
        (_abi.BIRD_ERR_IDENTITY, IdentityMissing),
        (_abi.BIRD_ERR_MALFORMED, MessageLost),
        (_abi.BIRD_ERR_DECRYPTION, DecryptionError),
        (_abi.BIRD_ERR_HANDLE, BirdRealtimeError),
        (-987, BirdRealtimeError),
    ],
)
def test_class_of_a_status(status: int, expected: type[BirdRealtimeError]) -> None:
    assert errors.class_of(status) is expected


def test_unknown_status_has_a_name() -> None:
    assert BirdRealtimeError("?", status=-987).status_name == "unknown status -987"


def test_builtin_classes() -> None:
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(TimedOut, TimeoutError)


def test_fields() -> None:
    error = AuthorizationError("no", http_status=403, field="auth_endpoint", retriable=False)
    assert (str(error), error.message, error.status_name) == ("no", "no", "BIRD_ERR_DENIED")
    assert (error.http_status, error.code, error.field, error.retriable) == (403, None, "auth_endpoint", False)
    assert str(TimedOut("late")) == "late"
