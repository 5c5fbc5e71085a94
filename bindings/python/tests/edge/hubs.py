"""A hub without sockets, and requests of its clients."""

from __future__ import annotations

import json
from typing import Any

from bird_realtime.edge import signing
from bird_realtime.edge.config import App, EdgeConfig
from bird_realtime.edge.frames import Request
from bird_realtime.edge.hub import Effect, Hub, Send

CONFIG = EdgeConfig()


def hub_with(connections: int = 1, *, config: EdgeConfig = CONFIG, **app: Any) -> Hub:
    """A hub with the open connections 1.1, 2.1 and so on, and these flags of the app."""
    hub = Hub(config)
    hub.app = App(**app)
    for number in range(1, connections + 1):
        hub.open(f"{number}.1", 0.0)
    return hub


def subscribe(hub: Hub, connection_id: str, channel: str, member: Any = None, now: float = 0.0) -> list[Effect]:
    data = {"channel": channel}
    if member is not None:
        data["member_data"] = json.dumps(member)
    signed = signing.channel_string(connection_id, channel, data.get("member_data"))
    data["auth"] = signing.auth_string(CONFIG.app_key, CONFIG.app_secret, signed)
    return hub.handle(connection_id, Request("bird:subscribe", None, json.dumps(data)), now)


def sign_in(hub: Hub, connection_id: str, member_data: str) -> list[Effect]:
    signed = signing.signin_string(connection_id, member_data)
    data = {"auth": signing.auth_string(CONFIG.app_key, CONFIG.app_secret, signed), "member_data": member_data}
    return hub.handle(connection_id, Request("bird:signin", None, json.dumps(data)), 0.0)


def error(effects: list[Effect]) -> Any:
    """The data of the one error frame that `effects` must be."""
    assert len(effects) == 1, effects
    assert isinstance(effects[0], Send)
    assert effects[0].frame.event == "bird:error"
    assert effects[0].frame.channel is None
    assert effects[0].frame.data is not None
    return json.loads(effects[0].frame.data)


def sent(effects: list[Effect]) -> list[tuple[tuple[str, ...], str]]:
    return [(effect.connection_ids, effect.frame.event) for effect in effects if isinstance(effect, Send)]


def payloads(effects: list[Effect], event: str) -> list[tuple[tuple[str, ...], Any]]:
    """Who gets frames of this event, and their data."""
    return [
        (effect.connection_ids, json.loads(effect.frame.data or "null"))
        for effect in effects
        if isinstance(effect, Send) and effect.frame.event == event
    ]
