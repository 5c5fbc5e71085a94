from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, Closed, InvalidArgument, InvalidState, _abi
from bird_realtime.authorization import Hooks
from bird_realtime.options import checked

from .fake_library import FakeLibrary


def test_unset_options_are_left_out() -> None:
    assert checked({"region": None, "proxy": "", "flap_guard": False, "auth_timeout_ms": 5}) == {
        "proxy": "",
        "flap_guard": False,
        "auth_timeout_ms": 5,
    }


def test_paths() -> None:
    assert checked({"ca_file": Path("/etc/ca.pem")}) == {"ca_file": "/etc/ca.pem"}


def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidArgument, match="unknown option ws_hosts; did you mean ws_host") as caught:
        checked({"ws_hosts": "x"})
    assert (caught.value.field, caught.value.status) == ("ws_hosts", _abi.BIRD_ERR_OPTION)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("region", 1, "must be a str, not int"),
        ("allow_insecure", 1, "must be True or False, not int"),
        ("connect_timeout_ms", "5", "must be an int, not str"),
        ("connect_timeout_ms", True, "must be an int, not bool"),
        ("proxy", Path("x"), "must be a str, not PosixPath"),
    ],
)
def test_types(key: str, value: Any, wanted: str) -> None:
    with pytest.raises(InvalidArgument, match=f"option {key} {wanted}"):
        checked({key: value})


@pytest.mark.parametrize("field", Hooks._fields)
def test_a_hook_is_a_function(fake: FakeLibrary, field: str) -> None:
    wrong: Any = {field: "https://example.com/auth"}
    with pytest.raises(InvalidArgument, match=f"{field} must be a function"):
        BirdRealtime("pk_test", region="us1", **wrong)


def test_what_the_library_is_told(fake: FakeLibrary) -> None:
    bird = BirdRealtime(
        "pk_test",
        ws_host="localhost:1",
        allow_insecure=True,
        auth_headers={"authorization": "Bearer x"},
        authorizer=lambda channel_name, connection_id: {},
        auto_connect=False,
    )
    bird.close()
    told = {call[2]: call[3] for call in fake.calls if call[0].startswith("bird_options_set") and len(call) > 4}
    assert told == {
        b"app_key": b"pk_test",
        b"ws_host": b"localhost:1",
        b"allow_insecure": True,
        b"authorizer": True,
        b"authorization": b"Bearer x",
    }
    assert "bird_client_connect" not in {call[0] for call in fake.calls}


def test_a_living_client_is_changed(fake: FakeLibrary) -> None:
    with BirdRealtime("pk_test", region="us1") as bird:
        bird.configure(reconnect="staged", reconnect_attempts_max=7, flap_guard=False, region=None)
        told = [call[2:4] for call in fake.calls if call[0] in ("bird_client_set", "bird_client_set_int")]
        assert told == [(b"reconnect", b"staged"), (b"reconnect_attempts_max", 7), (b"flap_guard", False)]
        fake.statuses["bird_client_set"] = _abi.BIRD_ERR_STATE
        with pytest.raises(InvalidState):
            bird.configure(region="eu1")
        wrong: Any = {"reconnects": "fixed"}
        with pytest.raises(InvalidArgument, match="did you mean reconnect"):
            bird.configure(**wrong)
        bird.retry_now()
        assert fake.calls[-1][0] == "bird_client_retry_now"
    for call in (bird.retry_now, bird.configure):
        with pytest.raises(Closed):
            call()


@pytest.mark.parametrize("key", ["pk\0x", "pk\ud800"])
def test_text_that_c_cannot_take(fake: FakeLibrary, key: str) -> None:
    with pytest.raises(InvalidArgument, match="app_key"):
        BirdRealtime(key, region="us1")


def test_nothing_is_left_of_a_client_that_was_refused(fake: FakeLibrary) -> None:
    fake.statuses["bird_client_create"] = _abi.BIRD_ERR_VALUE
    with pytest.raises(InvalidArgument):
        BirdRealtime("pk_test", region="us1")
    assert fake.destroyed == ["queue"]
    assert "bird_options_destroy" in {call[0] for call in fake.calls}


@pytest.mark.filterwarnings("error")
def test_nothing_is_left_of_a_client_that_cannot_connect(fake: FakeLibrary) -> None:
    fake.statuses["bird_client_connect"] = _abi.BIRD_ERR_SYSTEM
    with pytest.raises(BirdRealtimeError, match="status -20"):
        BirdRealtime("pk_test", region="us1")
    assert fake.destroyed == ["client", "queue"]
