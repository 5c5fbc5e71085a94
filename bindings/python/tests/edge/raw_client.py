"""A client that does only what a test tells it, on the `websockets` package."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from bird_realtime.edge import signing
from bird_realtime.testing import EdgeServer

TIMEOUT_S = 60.0


class RawClient:
    def __init__(self, edge: EdgeServer, url: str | None = None, **options: Any) -> None:
        self._edge = edge
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(url or edge.ws_url, max_size=None, open_timeout=TIMEOUT_S, proxy=None, **options)
        )
        self.connection_id = ""

    @classmethod
    def greeted(cls, edge: EdgeServer) -> RawClient:
        client = cls(edge)
        client.connection_id = client.receive_handshake()["connection_id"]
        return client

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def receive_handshake(self) -> dict[str, Any]:
        frame = self.receive()
        assert frame["event"] == "bird:connection_established"
        data: dict[str, Any] = frame["data"]
        return data

    def receive_text(self) -> str:
        message = self.socket.recv(timeout=TIMEOUT_S)
        assert isinstance(message, str)
        return message

    def receive(self) -> dict[str, Any]:
        """The next frame, with one level of string encoding undone."""
        frame: dict[str, Any] = json.loads(self.receive_text())
        if isinstance(frame.get("data"), str):
            frame["data"] = json.loads(frame["data"])
        return frame

    def send(self, event: str, data: Any = None, channel: str | None = None) -> None:
        parts = {"event": event, "channel": channel, "data": data}
        self.socket.send(json.dumps({key: value for key, value in parts.items() if value is not None}))

    def frames_so_far(self) -> list[dict[str, Any]]:
        """What the edge has sent until it answers a ping now."""
        self.send("bird:ping")
        frames = []
        while (frame := self.receive())["event"] != "bird:pong":
            frames.append(frame)
        return frames

    def subscribe(self, channel: str, member: dict[str, Any] | None = None) -> dict[str, Any]:
        """Subscribes with a good signature, if the channel needs one; the answer."""
        self.send("bird:subscribe", self.subscribe_data(channel, member))
        return self.receive()

    def subscribe_data(self, channel: str, member: dict[str, Any] | None = None) -> dict[str, str]:
        data = {"channel": channel}
        if member is not None:
            data["member_data"] = json.dumps(member)
        if channel.startswith(("private-", "presence-")):
            data["auth"] = self.sign(signing.channel_string(self.connection_id, channel, data.get("member_data")))
        return data

    def sign_in(self, member: dict[str, Any]) -> dict[str, Any]:
        """Signs in with a good signature; the answer."""
        member_data = json.dumps(member)
        auth = self.sign(signing.signin_string(self.connection_id, member_data))
        self.send("bird:signin", {"auth": auth, "member_data": member_data})
        return self.receive()

    def sign(self, signed: str) -> str:
        return signing.auth_string(self._edge.app_key, self._edge.app_secret, signed)

    def receive_close(self) -> tuple[int, str]:
        """The close code and reason of the edge, which must come next; 1006 for a stream that just ended."""
        try:
            frame = self.socket.recv(timeout=TIMEOUT_S)
        except ConnectionClosed as closed:
            return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")
        raise AssertionError(f"expected a close, got {frame!r}")
