"""A local edge for test suites: start it, point a client and the server SDK at it, script its faults.

    from bird_realtime.testing import App, EdgeConfig, EdgeServer

    with EdgeServer(EdgeConfig(app=App(client_events=True))) as edge:
        start_client(edge.app_key, ws_host=edge.ws_host, auth_endpoint=edge.auth_endpoint)
        edge.wait_for_subscription("orders")
        edge.publish("stock.moved", ["orders"], {"sku": "A-19"})
        edge.drop_connections()
        edge.wait_for(lambda: len(edge.journal("opened")) == 2, what="the client to come back")

Needs the extra `edge` of the package and Python 3.10; nothing here loads the native library.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

try:
    from .edge.config import App, ConfigError, EdgeConfig
    from .edge.controls import ChannelInfo, ConnectionInfo, ControlError, Controls
    from .edge.frames import RequestError, decode
    from .edge.journal import Entry
    from .edge.server import Edge
except ModuleNotFoundError as missing:
    if missing.name != "aiohttp":
        raise
    raise ModuleNotFoundError(
        "bird_realtime.testing needs aiohttp: pip install 'bird-realtime[edge]' on Python 3.10 or newer",
        name="aiohttp",
    ) from missing

__all__ = [
    "App",
    "ChannelInfo",
    "ConfigError",
    "ConnectionInfo",
    "ControlError",
    "EdgeConfig",
    "EdgeServer",
    "Entry",
]

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
CONTROL_TIMEOUT_S = 30.0
WAIT_TIMEOUT_S = 10.0
_WAIT_STEP_S = 0.05  # how soon a wait notices what the journal does not tell

_Result = TypeVar("_Result")


class EdgeServer(Controls):
    """An edge on a thread of its own, as a context manager.

    After `stop`, `start` listens on the same port again with a fresh state, which makes an outage. The controls
    (see `Controls`) and everything here may be used from any thread while the edge runs.
    """

    def __init__(self, config: EdgeConfig | None = None) -> None:
        self.config = config or EdgeConfig()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> EdgeServer:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the edge and returns when it listens; raises OSError when the address cannot be used."""
        if self._thread is not None:
            raise RuntimeError("this edge runs already")
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        thread = threading.Thread(
            target=lambda: asyncio.run(self._run(started)), name="bird-realtime-edge", daemon=True
        )
        thread.start()
        started.result(START_TIMEOUT_S)
        self._thread = thread

    def stop(self) -> None:
        """Closes every connection with 1001 and stops listening; does nothing when the edge does not run."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(STOP_TIMEOUT_S)
        if thread.is_alive():
            raise TimeoutError("the edge did not stop in time")

    # Where it is and how to get in

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self.config.host

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self.config.port

    @property
    def ws_host(self) -> str:
        """Host and port, as the `ws_host` option of a client takes them."""
        return self.config.ws_host

    @property
    def ws_url(self) -> str:
        """The WebSocket URL, without client name and version."""
        return self.config.ws_url

    @property
    def base_url(self) -> str:
        """The base URL of the REST API."""
        return self.config.base_url

    @property
    def auth_endpoint(self) -> str:
        """Where clients have channels authorized."""
        return self.config.auth_endpoint

    @property
    def member_auth_endpoint(self) -> str:
        """Where clients have their signin authorized."""
        return self.config.member_auth_endpoint

    @property
    def app_key(self) -> str:
        return self.config.app_key

    @property
    def app_secret(self) -> str:
        return self.config.app_secret

    @property
    def app_id(self) -> str:
        return self.config.app.app_id

    @property
    def api_key(self) -> str:
        """An API key that the REST API accepts."""
        return self.config.api_key or "bk_eu1_local"

    @property
    def encryption_master_key(self) -> str:
        """The base64 master key that the edge was started with, as the server SDK takes it."""
        return self.config.encryption_master_key_base64

    # Waiting

    def wait_for(
        self,
        predicate: Callable[[], _Result],
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
        what: str = "the condition",
    ) -> _Result:
        """Waits until `predicate` is true and returns its result; raises TimeoutError that tells the state."""
        deadline = time.monotonic() + timeout_s
        while True:
            version = self.edge.journal.version
            result = predicate()
            if result:
                return result
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(
                    f"waited {timeout_s} s for {what}; connections: {self.connections()}; "
                    f"channels: {self.channels()}; last in the journal: {self.journal()[-10:]}"
                )
            self.edge.journal.wait_beyond(version, min(left_s, _WAIT_STEP_S))

    def wait_for_connections(self, count: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S) -> list[ConnectionInfo]:
        """Waits until exactly `count` connections are open."""
        self.wait_for(lambda: len(self.connections()) == count, timeout_s=timeout_s, what=f"{count} open connections")
        return self.connections()

    def wait_for_subscription(
        self, channel: str, count: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[ConnectionInfo]:
        """Waits until at least `count` connections are subscribed to the channel; returns them."""

        def subscribed() -> list[ConnectionInfo]:
            found = [connection for connection in self.connections() if channel in connection.channels]
            return found if len(found) >= count else []

        return self.wait_for(subscribed, timeout_s=timeout_s, what=f"{count} subscriptions to {channel}")

    def wait_for_signin(self, member_id: str, *, timeout_s: float = WAIT_TIMEOUT_S) -> list[ConnectionInfo]:
        """Waits until a connection is signed in as the member; returns all that are."""
        return self.wait_for(
            lambda: [connection for connection in self.connections() if connection.member_id == member_id],
            timeout_s=timeout_s,
            what=f"a signin of {member_id}",
        )

    def wait_for_received(self, event: str, count: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S) -> list[Entry]:
        """Waits until clients have sent at least `count` messages called `event`; returns all of them."""

        def received() -> list[Entry]:
            found = [entry for entry in self.journal("received") if _event_of(entry.text) == event]
            return found if len(found) >= count else []

        return self.wait_for(received, timeout_s=timeout_s, what=f"{count} times {event} from clients")

    async def _run(self, started: concurrent.futures.Future[None]) -> None:
        try:
            edge = Edge(self.config)
            await edge.start()
        except BaseException as error:
            started.set_exception(error)
            return
        self.edge = edge
        self.config = edge.config
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        started.set_result(None)
        await self._stop.wait()
        await edge.stop()

    def _on_loop(self, action: Callable[[], _Result]) -> _Result:
        if self._thread is None or self._loop is None:
            raise RuntimeError("this edge does not run; use it in a with statement or call start()")
        if threading.current_thread() is self._thread:
            return action()
        done: concurrent.futures.Future[_Result] = concurrent.futures.Future()

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(act)
        return done.result(CONTROL_TIMEOUT_S)


def _event_of(message: str) -> str | None:
    try:
        return decode(message).event
    except RequestError:
        return None
