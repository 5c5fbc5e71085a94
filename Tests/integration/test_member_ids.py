"""Ids of members that contain a NUL reach the program whole, wherever it meets them."""

from __future__ import annotations

import json

from conftest import StartClient
from scripted_server import ScriptedServer, dump, event

ME = "m\0_7"
OTHER = "\0"


def test_member_ids_with_a_nul(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, authorizer=1, member_authorizer=1)
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "presence-lobby", 0)
    signed = dump({"member_id": ME}).decode()
    client.do("grant", client.wait_for("request")["request"], "k:s", signed)
    roster = {"presence": {"ids": [ME, OTHER], "hash": {ME: {"a": "\0"}, OTHER: None}, "count": 2}}
    connection.join("presence-lobby", roster, auth="k:s", member_data=signed)
    subscribed = client.wait_for("subscribed")
    assert (subscribed["my_id"], subscribed["member_count"]) == (ME, 2)
    connection.send_text(
        event("bird_internal:member_added", "presence-lobby", {"member_id": "new\0"}),
        event("bird_internal:member_removed", "presence-lobby", {"member_id": OTHER}),
    )
    assert client.wait_for("member_added")["member_id"] == "new\0"
    assert client.wait_for("member_removed")["member_id"] == OTHER
    told = client.do("roster", "presence-lobby")
    assert (told["members"], told["my_id"]) == (f"{ME} new\0", ME)
    client.do("signin", 5, 0)
    client.do("grant", client.wait_for("request", asks="member")["request"], "k:s", signed)
    connection.read_frame()
    connection.send_text({"event": "bird:signin_success", "data": {"member_data": signed}})
    assert client.wait_for("signed_in")["member_id"] == ME
    assert client.do("member")["member_id"] == ME
    connection.send_text(
        {
            "event": "bird_internal:watchlist_events",
            "data": {"events": [{"name": "online", "member_ids": ["a\0b", OTHER]}]},
        }
    )
    watched = client.wait_for("watchlist", event="online")
    assert json.loads(watched["data"]) == ["a\0b", OTHER]
    assert watched.get("first_id", "a\0b") == "a\0b"  # what C reads of the detail
