"""Who is told when members sign in and go, without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hubs import error, hub_with, payloads, sent, sign_in

from bird_realtime.edge.config import EdgeConfig
from bird_realtime.edge.hub import Effect, Hub

ME, ANOTHER = "1.1", "2.1"


def watching_hub(connections: int = 3, **options: Any) -> Hub:
    return hub_with(connections, config=EdgeConfig(**options), watchlist_events=True)


def sign_in_as(hub: Hub, connection_id: str, member_id: str, *watchlist: Any) -> list[Effect]:
    return sign_in(hub, connection_id, json.dumps({"member_id": member_id, "watchlist": list(watchlist)}))


def told(effects: list[Effect]) -> list[tuple[tuple[str, ...], dict[str, list[str]]]]:
    """Who hears what: by connections, the ids of each name."""
    return [
        (ids, {event["name"]: event["member_ids"] for event in data["events"]})
        for ids, data in payloads(effects, "bird_internal:watchlist_events")
    ]


def test_a_signin_is_followed_by_the_status_of_the_whole_list() -> None:
    hub = watching_hub()
    sign_in_as(hub, ANOTHER, "m_8")
    effects = sign_in_as(hub, ME, "m_7", "m_8", "m_9", "m_8", 10)
    assert sent(effects) == [((ME,), "bird:signin_success"), ((ME,), "bird_internal:watchlist_events")]
    assert told(effects) == [((ME,), {"online": ["m_8"], "offline": ["m_9", "10"]})]


def test_a_name_without_members_is_left_out() -> None:
    hub = watching_hub()
    assert told(sign_in_as(hub, ME, "m_7", "m_8")) == [((ME,), {"offline": ["m_8"]})]
    assert told(sign_in_as(hub, ANOTHER, "m_8", "m_7")) == [
        ((ANOTHER,), {"online": ["m_7"]}),
        ((ME,), {"online": ["m_8"]}),
    ]


def test_changes_are_told_of_members_not_connections() -> None:
    hub = watching_hub()
    sign_in_as(hub, ME, "m_7", "m_8")
    assert told(sign_in_as(hub, "2.1", "m_8")) == [((ME,), {"online": ["m_8"]})]
    assert told(sign_in_as(hub, "3.1", "m_8")) == []
    assert told(hub.leave("2.1", 0.0)) == []
    assert told(hub.disconnect_member("m_8", 0.0)) == [((ME,), {"offline": ["m_8"]})]
    hub.leave(ME, 0.0)
    hub.open("4.1", 0.0)
    assert told(sign_in_as(hub, "4.1", "m_8")) == []


def test_who_watches_himself_is_told_once() -> None:
    hub = watching_hub()
    assert told(sign_in_as(hub, ME, "m_7", "m_7")) == [((ME,), {"online": ["m_7"]})]
    assert told(sign_in_as(hub, ANOTHER, "m_7", "m_7")) == [((ANOTHER,), {"online": ["m_7"]})]
    assert told(hub.leave(ME, 0.0)) == []
    assert told(hub.leave(ANOTHER, 0.0)) == []


def test_signing_in_again_changes_the_list() -> None:
    hub = watching_hub()
    sign_in_as(hub, ME, "m_7", "m_8")
    assert told(sign_in_as(hub, ME, "m_7", "m_9")) == [((ME,), {"offline": ["m_9"]})]
    assert told(sign_in_as(hub, ANOTHER, "m_8")) == []
    assert told(sign_in_as(hub, "3.1", "m_9")) == [((ME,), {"online": ["m_9"]})]
    assert told(sign_in_as(hub, ME, "m_7")) == []
    assert told(hub.leave("3.1", 0.0)) == []


def test_another_member_is_refused_and_keeps_the_list() -> None:
    hub = watching_hub()
    sign_in_as(hub, ME, "m_7", "m_8")
    assert "m_7" in error(sign_in_as(hub, ME, "m_9", "m_1"))["message"]
    assert told(sign_in_as(hub, ANOTHER, "m_8")) == [((ME,), {"online": ["m_8"]})]
    assert told(sign_in_as(hub, "3.1", "m_1")) == []


def test_a_long_list_is_cut_and_the_signin_succeeds() -> None:
    hub = watching_hub()
    watchlist = [f"w_{number}" for number in range(101)]
    effects = sign_in_as(hub, ME, "m_7", *watchlist)
    assert sent(effects) == [
        ((ME,), "bird:signin_success"),
        ((ME,), "bird:error"),
        ((ME,), "bird_internal:watchlist_events"),
    ]
    assert payloads(effects, "bird:error")[0][1]["code"] == 4302
    assert told(effects) == [((ME,), {"offline": watchlist[:100]})]
    assert told(sign_in_as(hub, ANOTHER, "w_100")) == []
    exactly = sign_in_as(hub, "3.1", "m_9", *watchlist[:100])
    assert sent(exactly) == [(("3.1",), "bird:signin_success"), (("3.1",), "bird_internal:watchlist_events")]


@pytest.mark.parametrize("watchlist", ["m_8", {}, 1, [True], [1.5], [["m_8"]], ["a b"], [None]])
def test_bad_lists_are_refused(watchlist: Any) -> None:
    hub = watching_hub()
    text = error(sign_in(hub, ME, json.dumps({"member_id": "m_7", "watchlist": watchlist})))["message"]
    assert "watchlist" in text
    assert hub.connections[ME].identity is None


def test_the_flag() -> None:
    hub = hub_with(2)
    assert sent(sign_in_as(hub, ME, "m_7", *(f"w_{number}" for number in range(101)))) == [
        ((ME,), "bird:signin_success")
    ]
    assert told(sign_in_as(hub, ANOTHER, "w_1")) == []
    assert told(hub.leave(ANOTHER, 0.0)) == []
