"""The roster of a presence channel is, inside a handler, that of the handler's event; in C: cases_channel.c."""

from __future__ import annotations

import threading

from scripted_server import DEADLINE_S, ScriptedServer, event, text

from bird_realtime import BirdRealtime, Event, MemberEvent, PresenceChannel

CHANGES = 3000


def test_roster_is_that_of_the_event(server: ScriptedServer) -> None:
    """Each event says how the roster must be; many, with the joins and leaves between them, are in one batch."""
    problems: list[str] = []
    seen = [0]
    done = threading.Event()
    bird = BirdRealtime(
        "pk_test",
        ws_host=server.host,
        allow_insecure=True,
        authorizer=lambda channel_name, connection_id: {"auth": "k:s"},
    )
    with bird:
        channel = bird.subscribe("presence-room")
        assert isinstance(channel, PresenceChannel)

        def count() -> None:
            seen[0] += 1
            if seen[0] == 2 * CHANGES:
                done.set()

        @channel.bind("roster")
        def check(happened: Event) -> None:
            if list(channel.members) != happened.data:
                problems.append(f"{list(channel.members)} instead of {happened.data}")
            count()

        @channel.bind("bird:member_added")
        @channel.bind("bird:member_removed")
        def check_member(change: MemberEvent) -> None:
            if (change.member.member_id in channel.members) != (change.name == "bird:member_added"):
                problems.append(f"{change.name} {change.member}: {list(channel.members)}")
            count()

        connection = server.accept()
        connection.establish()
        connection.join("presence-room", {"presence": {"ids": [], "hash": {}, "count": 0}}, auth="k:s")
        connection.send(flood())
        assert done.wait(DEADLINE_S), seen
    assert not problems, problems[:3]


def flood() -> bytes:
    roster: list[str] = []
    frames = []
    for change_number in range(CHANGES):
        member = (change_number * change_number + change_number // 7) % 12
        name = str(member)
        change = "removed" if name in roster else "added"
        if change == "added":
            roster.append(name)
        else:
            roster.remove(name)
        frames.append(text(event(f"bird_internal:member_{change}", "presence-room", {"member_id": member})))
        frames.append(text(event("roster", "presence-room", roster)))
    return b"".join(frames)
