"""PyPI picows on uvloop with orjson: the fastest that Python has without this library."""

from __future__ import annotations

import os

import orjson
import uvloop
from measurement import Run
from peer_messages import SUBSCRIBE, Client
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect


class Listener(WSListener):  # type: ignore[misc]
    def __init__(self, client: Client) -> None:
        self._client = client

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type != WSMsgType.CLOSE and self._client.receive(frame.get_payload_as_memoryview()):
            transport.send(WSMsgType.TEXT, SUBSCRIBE.encode())


async def main() -> None:
    run = Run.of_arguments()

    def finish() -> None:
        run.print()
        # The frames that are still on their way would be handled before a loop that is asked to stop looks.
        os._exit(0)

    client = Client(run, finish, orjson.loads)
    transport, _ = await ws_connect(
        lambda: Listener(client), client.url, max_frame_size=1 << 30, ssl_context=run.tls_context
    )
    await transport.wait_disconnected()


uvloop.run(main())
