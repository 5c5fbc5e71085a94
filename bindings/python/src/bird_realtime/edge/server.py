"""The edge itself: one port, one aiohttp server, and the parts behind it."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
import time
from typing import Protocol

from aiohttp import web

from .auth_backend import AuthBackend
from .config import ConfigError, EdgeConfig
from .control_api import ControlApi
from .controls import Controls
from .faults import Faults, Target
from .guard import Guard
from .http_io import Refused, path_of, read_call, respond, suffer
from .hub import Hub
from .journal import Journal
from .replies import Call, Reply, json_reply
from .rest import RestApi, RestError
from .websocket_side import WebSocketSide

REST_BODY_LIMIT_BYTES = 1024 * 1024
AUTH_BODY_LIMIT_BYTES = 16 * 1024
CONTROL_BODY_LIMIT_BYTES = 64 * 1024 * 1024
STOP_GRACE_S = 0.5

_REST_ERRORS = {403: "auth_error", 413: "payload_too_large_error"}


class Edge:
    """An edge on the running event loop. `start` it once, `stop` it once."""

    def __init__(self, config: EdgeConfig) -> None:
        self.config = config
        self.hub = Hub(config)
        self.faults = Faults()
        self.journal = Journal()
        self.clients = WebSocketSide(config, self.hub, self.faults, self.journal)
        self.auth = AuthBackend(config, self.hub)
        self.rest = RestApi(self.hub, config.api_key)
        self._controls = ControlApi(Controls(self))
        self._guard = Guard(config)
        self._ssl = _ssl_context(config)
        self._stopping = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_GRACE_S)

    async def start(self) -> None:
        """Listens; afterwards `config` has the real port. Raises OSError when the address cannot be used."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.config.host, self.config.port, ssl_context=self._ssl)
        try:
            await site.start()
        except BaseException:
            await self._runner.cleanup()
            raise
        self.config = dataclasses.replace(self.config, port=self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes every connection with 1001 and stops listening; a client that does not answer is cut off."""
        self._stopping.set()
        for socket in self.clients.sockets.values():
            socket.close(1001, "edge stops")
        deadline = time.monotonic() + STOP_GRACE_S
        while self.clients.sockets and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for socket in self.clients.sockets.values():
            socket.drop(reset=False)
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_sender(request)
            path = path_of(request)
            if request.headers.get("upgrade", "").lower() == "websocket":
                return await self._upgrade(request, path)
            return await self._answer(request, path)
        except Refused as error:
            return respond(self._refusal(request, error))

    def _check_sender(self, request: web.Request) -> None:
        problem = self._guard.problem({name.lower(): value for name, value in request.headers.items()})
        if problem is not None:
            self.journal.add("refused", text=f"403 {problem}")
            raise Refused(403, problem)

    def _refusal(self, request: web.Request, error: Refused) -> Reply:
        if not request.raw_path.startswith("/v1/"):
            return json_reply(error.status, {"error": str(error)})
        type_ = _REST_ERRORS.get(error.status, "bad_request_error")
        return self.rest.refuse(RestError(error.status, type_, str(error)))

    async def _upgrade(self, request: web.Request, path: tuple[str, ...]) -> web.StreamResponse:
        self.journal.add("upgrade", text=request.raw_path)
        fault = self.faults.take_http(Target.UPGRADE)
        response = None if fault is None else await suffer(request, fault, self._stopping)
        if response is not None:
            return response
        app_key = path[1] if len(path) == 2 and path[0] == "app" else None
        return await self.clients.serve(request, app_key)

    async def _answer(self, request: web.Request, path: tuple[str, ...]) -> web.StreamResponse:
        if path[0] == "v1":
            return await self._rest(request)
        if path == ("bird", "auth"):
            return await self._authorize(request, Target.AUTH, self.auth.authorize_channel)
        if path == ("bird", "auth", "member"):
            return await self._authorize(request, Target.MEMBER_AUTH, self.auth.authorize_member)
        if path[0] == "_edge":
            return respond(self._controls.answer(await read_call(request, CONTROL_BODY_LIMIT_BYTES)))
        if path[0] == "app":
            return respond(json_reply(426, {"error": "this path takes a WebSocket upgrade"}, {"upgrade": "websocket"}))
        return respond(json_reply(404, {"error": "nothing here; see /_edge/ for the test controls"}))

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        call = await read_call(request, REST_BODY_LIMIT_BYTES)
        reply = self.rest.admit(call, time.monotonic())
        self.journal.add("rest", text=f"{request.method} {request.raw_path}")
        if reply is None:
            fault = self.faults.take_http(Target.REST)
            response = None if fault is None else await suffer(request, fault, self._stopping)
            if response is not None:
                self.rest.abandon(call)
                return response
            reply, effects = self.rest.perform(call, time.monotonic())
            self.clients.apply(effects)
        return respond(reply)

    async def _authorize(self, request: web.Request, target: Target, answer: _Authorize) -> web.StreamResponse:
        call = await read_call(request, AUTH_BODY_LIMIT_BYTES)
        self.journal.add(target.value, text=call.body.decode(errors="replace"))
        fault = self.faults.take_http(target)
        response = None if fault is None else await suffer(request, fault, self._stopping)
        if response is not None:
            return response
        return respond(answer(call, wrong_signature=fault is not None and fault.wrong_signature))


class _Authorize(Protocol):
    def __call__(self, call: Call, *, wrong_signature: bool) -> Reply: ...


def _ssl_context(config: EdgeConfig) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError("tls_cert", f"cannot load {config.tls_cert} with its key: {error}") from None
    return context
