"""The WebSocket client of PyPI aiohttp with the json of the standard library."""

from __future__ import annotations

import asyncio

import aiohttp
from measurement import Run
from peer_messages import SUBSCRIBE, Client


async def main() -> None:
    run = Run.of_arguments()
    is_done = asyncio.Event()
    client = Client(run, is_done.set)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(client.url, max_msg_size=0, ssl=run.tls_context or True) as socket,
    ):
        async for message in socket:
            if client.receive(message.data):
                await socket.send_str(SUBSCRIBE)
            if is_done.is_set():
                break
    run.print()


asyncio.run(main())
