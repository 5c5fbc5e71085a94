"""The WebSocket side: upgrades, what clients send, and the effects of the hub on sockets."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable

from aiohttp import web

from .client_socket import ClientSocket, Message, upgrade
from .config import EdgeConfig
from .faults import Answer, Faults
from .frames import Frame, RequestError, decode, encode
from .hub import Close, Effect, Hub, Send
from .journal import Journal
from .watchdog import Watchdog

_ANSWERS = {
    "bird:ping": Answer.PONG,
    "bird:subscribe": Answer.SUBSCRIBE,
    "bird:signin": Answer.SIGNIN,
}


class WebSocketSide:
    """All sockets. Refusals are close frames after a successful upgrade, so that clients see their code."""

    def __init__(self, config: EdgeConfig, hub: Hub, faults: Faults, journal: Journal) -> None:
        self.double_encoding = config.double_encoding
        self.authorized_deadline_s = config.authorized_deadline_s
        self.sockets: dict[str, ClientSocket] = {}
        self._config = config
        self._hub = hub
        self._faults = faults
        self._journal = journal
        self._numbers = itertools.count(1)

    async def serve(self, request: web.BaseRequest, app_key: str | None) -> web.StreamResponse:
        """Upgrades the request and serves the client until its stream ends."""
        socket = await upgrade(request, self._config.outbox_limit_bytes)
        refusal = self._hub.refusal(app_key, request.rel_url.query.get("protocol"))
        if refusal is None:
            await self._serve(socket, request.raw_path)
        else:
            code, reason = refusal
            self._journal.add("refused", text=f"{code} {reason}")
            socket.close(code, reason)
            await socket.run(lambda message: None)
        return socket.response

    def apply(self, effects: list[Effect]) -> None:
        """Performs the effects of the hub, in order."""
        for effect in effects:
            if isinstance(effect, Send):
                payload = encode(effect.frame, double_encoding=self.double_encoding)
                for connection_id in effect.connection_ids:
                    self.sockets[connection_id].send_text(payload)
            elif isinstance(effect, Close):
                self.sockets[effect.connection_id].close(effect.code, effect.reason)
            else:
                asyncio.get_running_loop().call_later(effect.delay_s, self._send_count, effect.channel)

    async def _serve(self, socket: ClientSocket, path: str) -> None:
        connection_id = f"{next(self._numbers)}.{secrets.randbelow(1_000_000_000)}"
        self.sockets[connection_id] = socket
        self._hub.open(connection_id, time.monotonic())
        self._journal.add("opened", connection_id, path)
        watchdog = self._watchdog(connection_id)
        if self._hub.app.authorized_connections:  # connections from before the flag are left alone
            asyncio.get_running_loop().call_later(
                self.authorized_deadline_s,
                lambda: self.apply(self._hub.expire_unauthorized(connection_id, time.monotonic())),
            )
        self._answer(Answer.HANDSHAKE, None, lambda: self._hub.handshake(connection_id))

        def receive(message: Message) -> None:
            watchdog.feed()
            self._receive(connection_id, message)

        def leave() -> None:
            self.apply(self._hub.leave(connection_id, time.monotonic()))

        code, reason = 0, ""
        try:
            code, reason = await socket.run(receive, on_overflow=leave)
        finally:
            watchdog.stop()
            leave()
            del self.sockets[connection_id]
            self._journal.add("closed", connection_id, f"{code} {reason}".strip())

    def _send_count(self, channel: str) -> None:
        self.apply(self._hub.send_count(channel, time.monotonic()))

    def _receive(self, connection_id: str, message: Message) -> None:
        if isinstance(message, bytes):
            self._journal.add("received", connection_id, f"binary message of {len(message)} bytes")
            self.apply(self._hub.refuse(connection_id, RequestError("Binary messages are not supported")))
            return
        self._journal.add("received", connection_id, message)
        try:
            request = decode(message)
        except RequestError as error:
            self.apply(self._hub.refuse(connection_id, error))
            return
        answer = _ANSWERS.get(request.event)
        channel = request.subject() if answer is Answer.SUBSCRIBE else None
        self._answer(answer, channel, lambda: self._hub.handle(connection_id, request, time.monotonic()))

    def _answer(self, answer: Answer | None, channel: str | None, act: Callable[[], list[Effect]]) -> None:
        """Acts now; or, with a fault for this answer, later or never."""
        fault = None if answer is None else self._faults.take_answer(answer, channel)
        if fault is None:
            self.apply(act())
        elif fault.delay_s is not None:
            asyncio.get_running_loop().call_later(fault.delay_s, lambda: self.apply(act()))

    def _watchdog(self, connection_id: str) -> Watchdog:
        return Watchdog(
            self._config.ping_after_s,
            self._config.pong_timeout_s,
            ping=lambda: self.apply([Send((connection_id,), Frame("bird:ping"))]),
            give_up=lambda: self.apply(
                self._hub.terminate(connection_id, 4201, "pong reply not received in time", time.monotonic())
            ),
        )
