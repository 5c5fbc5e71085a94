"""A TLS server that hands every byte on to a plaintext server behind it; or one that only hands on."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from types import TracebackType

CHUNK_BYTES = 256 * 1024


class TlsFront:
    """Listens on a free port of 127.0.0.1, on its own thread. When nobody listens behind it, it drops who it let in."""

    def __init__(self, context: ssl.SSLContext | None, backend_port: int) -> None:
        self._context = context
        self._backend_port = backend_port
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._run()])
        self.port = 0

    @property
    def host(self) -> str:
        """For the option ws_host."""
        return f"127.0.0.1:{self.port}"

    async def _run(self) -> None:
        # A backlog with room for all that many clients do at once.
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._backend_port)
            with contextlib.closing(behind_writer):
                pumps = [_pump(reader, behind_writer), _pump(behind_reader, writer)]
                tasks = [asyncio.ensure_future(pump) for pump in pumps]
                # The end of one side is the end of both.
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def __enter__(self) -> TlsFront:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._loop.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
