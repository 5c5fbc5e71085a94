"""One socket of a client: what goes out waits in a bounded queue, and nothing goes out after a close frame.

aiohttp frames and parses; the close handshake and pongs are done here, because aiohttp ends the stream right
behind its own close frame while a read is pending, and a reset may then overtake the close code.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Union

from aiohttp import WSMsgType, web

CLOSE_TIMEOUT_S = 5.0
MESSAGE_LIMIT_BYTES = 128 * 1024
FRAME_OVERHEAD_BYTES = 64  # charged per queued frame, so that empty ones are bounded too
CLOSE_REASON_LIMIT_BYTES = 123

OVERFLOW_CODE = 4100
NO_CODE = 1005
NO_CLOSE_FRAME_CODE = 1006

_LINGER_RESET = struct.pack("ii", 1, 0)

Message = Union[str, bytes]


async def upgrade(request: web.BaseRequest, outbox_limit_bytes: int) -> ClientSocket:
    """Accepts the WebSocket upgrade of `request`; extensions that it offers are declined."""
    response = web.WebSocketResponse(autoclose=False, autoping=False, compress=False, max_msg_size=MESSAGE_LIMIT_BYTES)
    await response.prepare(request)
    if request.transport is None:
        raise ConnectionResetError("the client left during the upgrade")
    return ClientSocket(response, request.transport, outbox_limit_bytes)


class ClientSocket:
    """A socket on the edge's loop. `response` is what the HTTP handler returns at the end."""

    def __init__(self, response: web.WebSocketResponse, transport: asyncio.Transport, outbox_limit_bytes: int) -> None:
        self.response = response
        self._transport = transport
        self._outbox_limit_bytes = outbox_limit_bytes
        self._outbox: deque[tuple[WSMsgType | None, bytes]] = deque()
        self._outbox_bytes = 0
        self._wake = asyncio.Event()
        self._closing = False
        self._abort_timer: asyncio.TimerHandle | None = None
        self._on_overflow: Callable[[], None] | None = None
        self._writer = asyncio.get_running_loop().create_task(self._write())

    def send_text(self, payload: bytes) -> None:
        """Queues a text message."""
        self._put(WSMsgType.TEXT, payload)

    def send_binary(self, payload: bytes) -> None:
        """Queues a binary message."""
        self._put(WSMsgType.BINARY, payload)

    def write_raw(self, data: bytes) -> None:
        """Queues bytes for the stream itself, past the WebSocket layer."""
        self._put(None, data)

    def close(self, code: int, reason: str) -> None:
        """Queues a close frame; the stream is aborted if the client does not answer it in time."""
        if self._closing:
            return
        self._closing = True
        payload = b"" if code == NO_CODE else struct.pack("!H", code) + _close_reason(reason)
        self._outbox.append((WSMsgType.CLOSE, payload))
        self._wake.set()
        self._abort_timer = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def drop(self, *, reset: bool) -> None:
        """Ends the stream without a close frame, by RST or else by FIN; what is queued is lost."""
        raw = self._transport.get_extra_info("socket")
        if reset and raw is not None and raw.fileno() >= 0:  # not if the client has gone by itself
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        self._transport.abort()

    async def run(
        self, on_message: Callable[[Message], None], on_overflow: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """Reads until the stream ends; the close code and reason that the client sent.

        `on_overflow` is called once when the client reads so slowly that the edge closes the connection.
        """
        self._on_overflow = on_overflow
        try:
            return await self._read(on_message)
        finally:
            if not self._closing:
                self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
            if self._abort_timer is not None:
                self._abort_timer.cancel()
            self._transport.close()

    async def _read(self, on_message: Callable[[Message], None]) -> tuple[int, str]:
        while True:
            try:
                message = await self.response.receive()
            except ConnectionError:
                return NO_CLOSE_FRAME_CODE, ""
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                on_message(message.data)
            elif message.type is WSMsgType.PING:
                self._put(WSMsgType.PONG, message.data)
            elif message.type is WSMsgType.CLOSE:
                code = message.data or NO_CODE
                self._clear()
                self.close(code, "")
                return code, message.extra or ""
            elif message.type is not WSMsgType.PONG:
                return NO_CLOSE_FRAME_CODE, ""

    def _put(self, kind: WSMsgType | None, payload: bytes) -> None:
        if self._closing:
            return
        size = len(payload) + FRAME_OVERHEAD_BYTES
        # A message larger than the bound itself may still go out alone.
        if self._outbox and self._outbox_bytes + size > self._outbox_limit_bytes:
            self._clear()
            self.close(OVERFLOW_CODE, "outgoing buffer is full")
            if self._on_overflow is not None:
                asyncio.get_running_loop().call_soon(self._on_overflow)
            return
        self._outbox.append((kind, payload))
        self._outbox_bytes += size
        self._wake.set()

    def _clear(self) -> None:
        if not self._closing:
            self._outbox.clear()
            self._outbox_bytes = 0

    async def _write(self) -> None:
        try:
            while True:
                while self._outbox:
                    kind, payload = self._outbox.popleft()
                    self._outbox_bytes -= len(payload) + FRAME_OVERHEAD_BYTES
                    if kind is None:
                        self._transport.write(payload)
                    else:
                        await self.response.send_frame(payload, kind)
                    if kind is WSMsgType.CLOSE:
                        return
                self._wake.clear()
                await self._wake.wait()
        except ConnectionError:
            pass  # the client is gone, which the reader sees as well


def _close_reason(reason: str) -> bytes:
    """`reason` as it fits into a close frame, cut between characters."""
    return reason.encode(errors="replace")[:CLOSE_REASON_LIMIT_BYTES].decode(errors="ignore").encode()
