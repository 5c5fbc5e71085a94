"""aiohttp requests and responses from and to `replies`, with bounds and faults."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import unquote

from aiohttp import web

from .faults import HttpFault
from .replies import Call, Reply

HANG_LIMIT_S = 600.0


class Refused(Exception):  # noqa: N818
    """A request that is not served; carries the HTTP status and what is wrong."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def path_of(request: web.BaseRequest) -> tuple[str, ...]:
    """The segments of the path: split raw, then decoded, so that an encoded slash stays in its segment."""
    try:
        return tuple(unquote(part, errors="strict") for part in request.rel_url.raw_path.split("/")[1:])
    except UnicodeDecodeError:
        raise Refused(400, "the path is not percent-encoded UTF-8") from None


async def read_call(request: web.BaseRequest, body_limit_bytes: int) -> Call:
    """Reads the whole request; raises Refused when the body is larger than the bound."""
    path = path_of(request)
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > body_limit_bytes:
            raise Refused(413, f"the body is larger than {body_limit_bytes} bytes")
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Call(request.method, path, tuple(request.rel_url.query.items()), headers, bytes(body))


def respond(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


async def suffer(request: web.BaseRequest, fault: HttpFault, stopping: asyncio.Event) -> web.Response | None:
    """Lets `fault` happen; the response if it ends the request."""
    if fault.hang:
        await _wait(stopping, HANG_LIMIT_S)
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=503)
    if fault.delay_s:
        await _wait(stopping, fault.delay_s)
    if fault.status is None:
        return None
    return web.Response(status=fault.status, body=fault.body, headers=fault.headers)


async def _wait(stopping: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)
