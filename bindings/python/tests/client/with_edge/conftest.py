"""Clients on the real library, on an edge of the test's own."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bird_realtime import BirdRealtime

from .waiting import GENEROUS_S

if sys.version_info < (3, 10):
    collect_ignore_glob = ["test_*.py"]  # the edge needs 3.10, as aiohttp does
else:
    from bird_realtime.testing import App, EdgeConfig, EdgeServer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
        from bird import Bird

    @pytest.fixture
    def edge() -> Iterator[EdgeServer]:
        app = App(client_events=True, connection_counting=True, connection_count_events=True)
        with EdgeServer(EdgeConfig(app=app)) as server:
            yield server

    @pytest.fixture
    def connect(edge: EdgeServer) -> Iterator[Callable[..., BirdRealtime]]:
        """Creates clients of the edge, for the member named, that are connected; they are closed after the test."""
        with ExitStack() as stack:

            def create(member_id: str = "m_1", *, wait: bool = True, **options: Any) -> BirdRealtime:
                options = {**settings(edge, member_id), **options}
                bird = stack.enter_context(BirdRealtime(edge.app_key, **options))
                if wait:
                    bird.wait_until("connected", GENEROUS_S)
                return bird

            yield create

    @pytest.fixture
    def sdk(edge: EdgeServer) -> Iterator[Bird]:
        with Bird(
            api_key=edge.api_key,
            base_url=edge.base_url,
            realtime_key=edge.app_key,
            realtime_secret=edge.app_secret,
            realtime_encryption_master_key=edge.encryption_master_key,
            max_retries=0,
        ) as client:
            yield client

    def settings(edge: EdgeServer, member_id: str) -> dict[str, Any]:
        return {
            "ws_host": edge.ws_host,
            "allow_insecure": True,
            "auth_endpoint": edge.auth_endpoint,
            "member_auth_endpoint": edge.member_auth_endpoint,
            "auth_headers": {"authorization": f"Bearer {member_id}"},
        }
