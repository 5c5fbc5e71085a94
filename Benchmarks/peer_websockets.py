"""PyPI websockets with the json of the standard library."""

from __future__ import annotations

import asyncio

from measurement import Run
from peer_messages import SUBSCRIBE, Client
from websockets.asyncio.client import connect


async def main() -> None:
    run = Run.of_arguments()
    is_done = asyncio.Event()
    client = Client(run, is_done.set)
    async with connect(client.url, max_size=None, compression=None, ssl=run.tls_context) as socket:
        async for message in socket:
            if client.receive(message):
                await socket.send(SUBSCRIBE)
            if is_done.is_set():
                break
    run.print()


asyncio.run(main())
