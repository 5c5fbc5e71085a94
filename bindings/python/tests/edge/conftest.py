from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

# A shell that runs the tests in the background has them ignore SIGINT, and their programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

if sys.version_info < (3, 10):
    collect_ignore_glob = ["test_*.py"]  # the edge needs 3.10, as aiohttp does
else:
    from raw_client import RawClient

    from bird_realtime.testing import App, EdgeConfig, EdgeServer

    @pytest.fixture
    def edge() -> Iterator[EdgeServer]:
        """An edge with every flag of the app on but authorized connections."""
        app = App(client_events=True, connection_counting=True)
        with EdgeServer(EdgeConfig(app=app)) as server:
            yield server

    @pytest.fixture
    def start_edge() -> Iterator[Callable[[EdgeConfig], EdgeServer]]:
        """Starts edges with a configuration of the test's own."""
        with ExitStack() as stack:
            yield lambda config: stack.enter_context(EdgeServer(config))

    @pytest.fixture
    def connect(edge: EdgeServer) -> Iterator[Callable[[], RawClient]]:
        """Opens clients of `edge` that have their handshake."""
        with ExitStack() as stack:
            yield lambda: stack.enter_context(RawClient.greeted(edge))
