"""The Swift face against the local edge: what only this face has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from program import Program

from bird_realtime.edge.signing import auth_string, channel_string, signin_string
from bird_realtime.testing import App, EdgeConfig, EdgeServer

RunSwift = Callable[..., Program]


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    members = {"m_7": {"name": "Noor"}, "m_8": None}
    with EdgeServer(EdgeConfig(app=App(client_events=True), members=members)) as running:
        yield running


@pytest.fixture
def run(edge: EdgeServer, run_swift: RunSwift) -> RunSwift:
    return lambda *options: run_swift("swift-script", edge.app_key, edge.ws_host, *options)


def test_an_error_that_names_a_channel(edge: EdgeServer, run: RunSwift) -> None:
    """As soketi refuses client events: on the channel, and where errors of the connection are told."""
    script = run()
    script.write("subscribe orders")
    script.write("bind orders bird:error")
    script.wait_for("orders bird:subscription_succeeded .*")
    edge.inject_text('{"event":"bird:error","channel":"orders","data":{"code":4301,"message":"slow down"}}')
    assert json.loads(script.wait_for("bird:error: (.*)")[1]) == {"code": 4301, "message": "slow down"}
    script.wait_for("error 4301 slow down on orders")


def test_authorizer_closures(edge: EdgeServer, run: RunSwift) -> None:
    script = run("authorizer=1")
    script.write("subscribe private-ledger")
    for _ in range(2):  # again after a reconnect, for the new connection
        connection_id = script.wait_for(r"asked private-ledger ([\d.]+)")[1]
        signed = channel_string(connection_id, "private-ledger")
        script.write(f"grant private-ledger {auth_string(edge.app_key, edge.app_secret, signed)}")
        script.wait_for("private-ledger bird:subscription_succeeded .*")
        edge.drop_connections()

    connection_id = script.wait_for(r"asked private-ledger ([\d.]+)")[1]
    script.write("fail private-ledger later")
    script.wait_for(r"asked private-ledger [\d.]+")  # a failure that may pass is asked again
    script.write("refuse private-ledger never")
    error = json.loads(script.wait_for("private-ledger bird:subscription_error (.*)")[1])
    assert "never" in error["error"]
    assert error["will_retry"] is False

    script.write("subscribe presence-lobby")
    script.wait_for(r"asked presence-lobby [\d.]+")
    member_data = '{"member_id":"m_9"}'
    signed = channel_string(connection_id, "presence-lobby", member_data)
    script.write(f"grant presence-lobby {auth_string(edge.app_key, edge.app_secret, signed)} {member_data}")
    success = json.loads(script.wait_for("presence-lobby bird:subscription_succeeded (.*)")[1])
    assert success == {"is_resubscribe": False, "interrupted_ms": 0, "my_id": "m_9", "member_count": 1}

    script.write("signin")
    script.wait_for(r"asked signin [\d.]+")
    signed = signin_string(connection_id, member_data)
    script.write(f"grant signin {auth_string(edge.app_key, edge.app_secret, signed)} {member_data}")
    script.wait_for("signin m_9 -")


def test_header_provider(edge: EdgeServer, run: RunSwift) -> None:
    script = run(f"auth={edge.auth_endpoint}", f"member_auth={edge.member_auth_endpoint}", "headers=1")
    script.write("signin")
    script.wait_for("asked headers /bird/auth/member")
    script.write("grant headers m_8")  # the edge takes the token for the member
    script.wait_for("signin m_8 null")
    script.write("subscribe presence-lobby")
    script.wait_for("asked headers /bird/auth")
    script.write("grant headers a\x01b")
    error = json.loads(script.wait_for("presence-lobby bird:subscription_error (.*)")[1])
    assert "authorization" in error["error"]
    assert error["will_retry"] is False
    script.write("subscribe presence-room")
    script.wait_for("asked headers /bird/auth")
    script.write("fail headers later")
    script.wait_for("asked headers /bird/auth")
    script.write("refuse headers never")
    assert "never" in script.wait_for("presence-room bird:subscription_error (.*)")[1]


def test_leave_to_reconnect(edge: EdgeServer, run: RunSwift) -> None:
    script = run("may_reconnect=1", "backoff_base_ms=10")
    script.wait_for("state connecting connected")
    edge.close_connections(4201, "no pong")
    script.wait_for("asked reconnect 1 4201")
    script.write("grant reconnect skip")
    script.wait_for("connecting in 2 .+ jitter")
    script.wait_for("asked reconnect 2 4201")
    script.write("grant reconnect 0.05")
    script.wait_for("connecting in 2 0.05 .*")
    script.wait_for("state connecting connected")
    script.write("statistics")
    script.wait_for(".* refused 1")
    edge.drop_connections()
    script.wait_for("asked reconnect 1 0")
    script.wait_for("state connecting connected")  # nobody has answered


def test_policies_are_values_that_may_be_changed(edge: EdgeServer, run: RunSwift) -> None:
    script = run("reconnect=fixed", "reconnect_delay_ms=600000", "flap_guard=0")
    script.wait_for("state connecting connected")
    edge.drop_connections()
    script.wait_for("connecting in 1 600.0 fixed")
    script.write("policy staged 0.02 2")  # what is planned is planned anew, from the end of the attempt before
    script.wait_for(r"connecting in 1 0\.0\d* staged")
    script.wait_for("state connecting connected")
    script.write("policy fixed 600")
    script.write("flush")  # of commands, too
    script.wait_for("flushed")
    edge.drop_connections()
    script.wait_for("connecting in 1 600.0 fixed")
    script.write("retry")
    script.wait_for("state connecting connected")
    edge.fail_http("upgrade", status=503)
    script.write("policy staged 0.02 2")
    script.write("flush")
    script.wait_for("flushed")
    edge.drop_connections()
    script.wait_for("connecting in 2 0.04 staged")
    script.wait_for("state connecting disconnected")

    script.write("policy fixed -1")
    script.wait_for("not changed: .*reconnect_delay_ms.*")
    script.write("set ws_host elsewhere")
    script.wait_for("not changed: .*ws_host.*fixed when the client is created.*")
    script.write("set no_such_option 1")
    script.wait_for("not changed: .*no_such_option.*")


def test_hints_about_the_network(edge: EdgeServer, run: RunSwift) -> None:
    script = run("reconnect=fixed", "reconnect_delay_ms=600000", "flap_guard=0", "network_watch=0")
    for hint in ("up", "resumed"):
        script.wait_for("state connecting connected")
        script.write("hint down")  # has it look after the connection
        edge.wait_for_received("bird:ping", 1 if hint == "up" else 2)
        edge.drop_connections()
        script.wait_for("connecting in 1 600.0 fixed")
        script.write(f"hint {hint}")
    script.wait_for("state connecting connected")


def test_the_keep_alive_may_be_changed(edge: EdgeServer, run: RunSwift) -> None:
    script = run()
    script.wait_for("state connecting connected")
    script.write("keep 0.05 30")
    edge.wait_for_received("bird:ping", 2)
    script.write("keep 0 30")
    script.wait_for("not changed: .*activity_timeout_ms.*")


def test_signin_throws_what_went_wrong(edge: EdgeServer, run: RunSwift) -> None:
    script = run("authorizer=1")
    script.wait_for("state connecting connected")
    script.write("signin")
    script.wait_for(r"asked signin [\d.]+")
    script.write("refuse signin never")
    script.wait_for("no signin .*never.*")
    script.write("member")
    script.wait_for("is -")

    script.write("signin")
    script.wait_for(r"asked signin [\d.]+")
    edge.drop_connections()
    script.wait_for("no signin .+")


def test_presence(edge: EdgeServer, run: RunSwift, run_swift: RunSwift) -> None:
    script = run(f"auth={edge.auth_endpoint}", f"member_auth={edge.member_auth_endpoint}")
    script.write("subscribe presence-lobby")
    script.wait_for("presence-lobby bird:subscription_succeeded .*")
    endpoints = (edge.auth_endpoint, edge.member_auth_endpoint)
    other = run_swift("swift-example", "chat", edge.app_key, edge.ws_host, *endpoints, "m_8")
    assert json.loads(script.wait_for("presence-lobby bird:member_added (.*)")[1])["member_id"] == "m_8"
    script.write("roster presence-lobby")
    script.wait_for("roster m_7 m_7,m_8")
    other.close()
    assert json.loads(script.wait_for("presence-lobby bird:member_removed (.*)")[1])["member_id"] == "m_8"
    script.write("roster presence-lobby")
    script.wait_for("roster m_7 m_7")


def test_a_slow_queue_makes_reading_pause_and_loses_nothing(edge: EdgeServer, run: RunSwift) -> None:
    script = run("queue_records_max=100")
    script.write("subscribe orders")
    script.wait_for("orders bird:subscription_succeeded .*")
    script.write("block")
    script.wait_for("blocked")
    count = 3_000
    for number in range(count):
        edge.publish("tick", ["orders"], number)

    def has_paused() -> bool:
        script.write("statistics")
        paused = script.wait_for(r"pauses (\d+) waiting (\d+) .*")
        return int(paused[1]) > 0 and int(paused[2]) >= 100

    edge.wait_for(has_paused, what="the client to pause")
    script.write("unblock")
    for number in range(count):
        assert script.wait_for(r"orders tick (.*)")[1] == str(number)


def test_a_slow_queue_may_lose_events(edge: EdgeServer, run: RunSwift) -> None:
    script = run("queue_records_max=100", "overflow=drop-newest")
    script.write("subscribe orders")
    script.wait_for("orders bird:subscription_succeeded .*")
    script.write("block")
    script.wait_for("blocked")
    for number in range(300):
        edge.publish("tick", ["orders"], number)

    def has_dropped() -> bool:
        script.write("statistics")
        return int(script.wait_for(r"pauses 0 waiting \d+ dropped (\d+) .*")[1]) >= 200

    edge.wait_for(has_dropped, what="the client to drop what is too much")
    script.write("unblock")
    for number in range(100):
        assert script.wait_for(r"orders tick (.*)")[1] == str(number)
    script.wait_for("error .*overflow is drop-newest.*")


def test_payloads_keep_their_bytes(edge: EdgeServer, run: RunSwift) -> None:
    script = run()
    script.write("subscribe orders")
    script.wait_for("orders bird:subscription_succeeded .*")
    for text in ("12345678901234567890.123456789", '{"a": [1e400, -0 ]}', '"ready"', "null", "true"):
        frame = {"event": "raw", "channel": "orders", "data": text}
        edge.inject_text(json.dumps(frame))
        assert script.wait_for("orders raw (.*)")[1] == text
    edge.inject_text('{"event":"raw","channel":"orders","data":"no JSON"}')
    script.wait_for('orders raw "no JSON"')
    edge.inject_text('{"event":"raw","channel":"orders"}')
    script.wait_for("orders raw -")


def test_trigger(edge: EdgeServer, run: RunSwift) -> None:
    script = run(f"auth={edge.auth_endpoint}")
    script.write("subscribe private-ledger")
    script.wait_for("private-ledger bird:subscription_succeeded .*")
    script.write('trigger private-ledger client-x {"on":true}')
    script.wait_for("triggered true")
    received = edge.wait_for_received("client-x")
    assert json.loads(received[0].text or "") == {
        "event": "client-x",
        "channel": "private-ledger",
        "data": {"on": True},
    }
    script.write("trigger private-ledger x")
    script.wait_for("refused .*client-.*")
    script.write("disconnect")
    script.wait_for("state connected disconnected")
    script.write("trigger private-ledger client-x")
    script.wait_for("triggered false")
    script.write("connect")
    success = json.loads(script.wait_for("private-ledger bird:subscription_succeeded (.*)")[1])
    assert success["is_resubscribe"] is True


def test_a_bad_name_fails_on_the_channel_and_on_the_client(run: RunSwift) -> None:
    script = run()
    script.wait_for("state connecting connected")
    script.write("subscribe #bad")
    lines = {script.wait_for(r"(error 0|#bad bird:subscription_error) .*channel name.*")[1] for _ in range(2)}
    assert lines == {"error 0", "#bad bird:subscription_error"}
    script.write("state")
    script.wait_for(r"is connected [\d.]+")


def test_handlers_are_unbound_one_by_one_by_event_and_all(edge: EdgeServer, run: RunSwift) -> None:
    script = run()
    for what in ("orders moved", "orders gone", "* moved", "* gone", "orders moved"):
        script.write(f"bind {what}")
    edge.wait_for_subscription("orders")

    def told(number: int) -> list[str]:
        """What handlers say of one event each, up to that of the sequence."""
        script.write("member")
        script.wait_for("is -")  # what was written before has been done
        for event in ("moved", "gone", "end"):
            edge.publish(event, ["orders"], number)
        script.wait_for(f"took orders orders end {number}")
        end = script.lines.index(f"took orders orders end {number}")
        return [line for line in script.lines[:end] if line.endswith(f": {number}")]

    script.write("stream orders")
    script.write("take orders 100")
    script.wait_for("open orders")
    assert told(1) == ["moved: 1", "moved: 1", "moved on orders: 1", "gone: 1", "gone on orders: 1"]
    script.write("unbind_last")
    script.write("unbind * gone")
    script.write("unbind orders gone")
    script.write("unbind orders no-such-event")
    assert told(2) == ["moved: 2", "moved on orders: 2"]
    script.write("unbind_all *")
    assert told(3) == ["moved: 3"]
    script.write("unbind_all orders")
    script.wait_for("end orders")


def test_a_handler_that_is_bound_late_hears_how_the_subscription_stands(edge: EdgeServer, run: RunSwift) -> None:
    edge.deny_channel("private-ledger")
    script = run(f"auth={edge.auth_endpoint}")
    for name, event in (("orders", "bird:subscription_succeeded"), ("private-ledger", "bird:subscription_error")):
        script.write(f"subscribe {name}")
        script.wait_for(f"{name} {event} .*")
        script.write(f"bind {name} {event}")
        script.wait_for(f"{event}: .*")
    # And so does a sequence.
    script.write("stream private-ledger")
    script.write("take private-ledger 1")
    script.wait_for("threw private-ledger -30 .*")


def test_watchlist(edge: EdgeServer, run: RunSwift) -> None:
    edge.update_app(watchlist_events=True)
    edge.set_watchlist("m_7", ["m_8", "m_9"])
    script = run(f"member_auth={edge.member_auth_endpoint}")
    script.write("watched")
    script.wait_for("watched  ")
    script.write("watch")
    script.write("signin")
    script.wait_for("offline m_8,m_9")
    other = run(f"member_auth={edge.member_auth_endpoint}", "headers=1")
    other.write("signin")
    other.wait_for("asked headers .*")
    other.write("grant headers m_8")
    script.wait_for("online m_8")
    script.write("watched")
    script.wait_for("watched m_8 m_9")
    script.write("watch")  # late
    assert {script.wait_for("(?:on|off)line .*")[0] for _ in range(2)} == {"online m_8", "offline m_9"}
    edge.drop_connections()
    script.wait_for("signed in m_7 .*")
    script.wait_for("offline .*")


def test_a_released_client_closes_its_connection(edge: EdgeServer, run: RunSwift) -> None:
    script = run()
    script.write("subscribe orders")
    script.wait_for("orders bird:subscription_succeeded .*")
    script.write("release")
    script.wait_for("released")
    edge.wait_for_connections(0)
    script.end_input()
    assert script.wait() == 0


def test_close(edge: EdgeServer, run: RunSwift) -> None:
    script = run(f"member_auth={edge.member_auth_endpoint}")
    script.write("signin")
    script.wait_for(r'signin m_7 \{"name": ?"Noor"\}')
    script.write("member")
    script.wait_for("is m_7")
    script.write("close")
    script.wait_for("closed")
    edge.wait_for_connections(0)
    script.write("signin")
    script.wait_for("no signin .*closed.*")
    script.write("close")
    script.wait_for("close: .*closed.*")
