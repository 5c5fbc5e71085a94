"""A stand-in for the loaded library: it answers calls as the header says and delivers the batches a test gives it.

It has no network and no protocol; what needs those is tested with the real library.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import Any

from bird_realtime import _abi

from .batches import ROSTERS, BatchMaker


class FakeLibrary:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers: list[tuple[Any, ...]] = []
        self.statuses: dict[str, int] = {}
        self.state = _abi.BIRD_STATE_CONNECTED
        self.channel_states: dict[int, int] = {}
        self.tags: dict[str, int] = {}
        self._changed = threading.Condition()
        self._batches: deque[BatchMaker] = deque()
        self._held: dict[int, BatchMaker] = {}
        self._is_woken = False
        self.waiting_thread: int | None = None
        self._handles = 100
        self._channels: dict[bytes, int] = {}
        self._names: dict[int, str] = {}
        self._interned: dict[bytes, int] = {}
        self.released: list[int] = []
        self._references: dict[int, int] = {}
        self._dead: set[int] = set()
        self.destroyed: list[str] = []

    def deliver(self, batch: BatchMaker) -> None:
        with self._changed:
            self._batches.append(batch)
            self._changed.notify_all()

    @property
    def waiting_batches(self) -> int:
        return len(self._batches)

    @property
    def held_batches(self) -> int:
        return len(self._held)

    def _new_handle(self) -> int:
        self._handles += 1
        return self._handles

    def _handle_status(self, arguments: tuple[Any, ...]) -> int:
        is_dead = bool(arguments) and getattr(arguments[0], "value", None) in self._dead
        return _abi.BIRD_ERR_HANDLE if is_dead else _abi.BIRD_OK

    def _status(self, name: str) -> int:
        return self.statuses.get(name, _abi.BIRD_OK)

    def __getattr__(self, name: str) -> Any:
        """Functions that a test needs no more of than that they were called."""
        if name not in _abi.FUNCTIONS:
            raise AttributeError(name)

        def function(*arguments: Any) -> int:
            self.calls.append((name, *arguments))
            return self._handle_status(arguments) or self._status(name)

        return function

    def bird_status_message(self, status: int) -> bytes:
        return b"status %d" % status

    def bird_queue_create(self, queue: Any) -> int:
        queue._obj.value = self._new_handle()
        return _abi.BIRD_OK

    def bird_client_create(self, options: Any, client: Any, error: Any) -> int:
        client._obj.value = self._new_handle()
        return self._status("bird_client_create")

    def bird_client_destroy(self, client: Any) -> int:
        self.destroyed.append("client")
        self._dead.add(client.value)
        return _abi.BIRD_OK

    def bird_queue_destroy(self, queue: Any) -> int:
        self.destroyed.append("queue")
        return _abi.BIRD_OK

    def bird_client_state(self, client: Any, state: Any) -> int:
        state._obj.value = self.state
        return self._handle_status((client,))

    def _channel(self, name: bytes, channel: Any) -> int:
        handle = self._channels.setdefault(name, self._new_handle())
        self._references[handle] = self._references.get(handle, 0) + 1
        self._names[handle] = name.decode()
        channel._obj.value = handle
        return _abi.BIRD_OK

    def handle_of(self, name: str) -> int:
        return next(handle for handle, each in self._names.items() if each == name)

    def bird_client_subscribe(self, client: Any, name: bytes, tag: int, channel: Any, error: Any) -> int:
        status = self._status("bird_client_subscribe")
        return status or self._channel(name, channel)

    def bird_client_member_channel(self, client: Any, channel: Any) -> int:
        return self._channel(b"the member channel", channel)

    def bird_channel_set_tag(self, channel: Any, tag: int) -> int:
        self.tags[self._names[channel.value]] = tag
        return _abi.BIRD_OK

    def bird_channel_state(self, channel: Any, state: Any) -> int:
        state._obj.value = self.channel_states.get(channel.value, _abi.BIRD_CHANNEL_SUBSCRIBED)
        return self._handle_status((channel,))

    def bird_channel_release(self, channel: Any) -> None:
        assert channel.value not in self._dead
        self.released.append(channel.value)
        # References are counted; the package holds one, and gives others back at once.
        self._references[channel.value] -= 1
        if self._references[channel.value] == 0:
            self._dead.add(channel.value)

    def bird_channel_unsubscribe(self, channel: Any) -> int:
        self._channels.pop(self._names[channel.value].encode(), None)
        return _abi.BIRD_OK

    def bird_client_intern(self, client: Any, event: bytes, event_id: Any, error: Any) -> int:
        event_id._obj.value = self._interned.setdefault(event, len(self._interned) + 1)
        return self._handle_status((client,))

    def event_id(self, name: str) -> int:
        return self._interned[name.encode()]

    def bird_members_count(self, members: int | None) -> int:
        return 0 if members is None else len(ROSTERS[members].rows)

    def bird_members_id(self, members: int, index: int) -> int:
        return ctypes.addressof(ROSTERS[members].rows[index][0])

    def bird_members_id_length(self, members: int, index: int) -> int:
        return ROSTERS[members].rows[index][1]

    def bird_members_info(self, members: int, index: int) -> bytes:
        return ROSTERS[members].rows[index][2]

    def bird_request_authorize(
        self, request: int, auth: bytes, member_data: Any, shared_secret: Any, error: Any
    ) -> int:
        self.answers.append(("authorize", request, auth, member_data, shared_secret))
        return self._status("bird_request_authorize")

    def bird_request_headers(self, request: int, headers: Any, count: int, error: Any) -> int:
        self.answers.append(("headers", request, {each.name: each.value for each in headers[:count]}))
        return self._status("bird_request_headers")

    def bird_request_proceed(self, request: int, delay_ms: int, error: Any) -> int:
        self.answers.append(("proceed", request, delay_ms))
        return self._status("bird_request_proceed")

    def bird_request_fail(self, request: int, retriable: bool, message: Any, error: Any) -> int:
        self.answers.append(("fail", request, retriable, message.value))
        return self._status("bird_request_fail")

    def bird_queue_wait(self, queue: Any, timeout_ms: int) -> int:
        with self._changed:
            self.waiting_thread = threading.get_ident()
            self._changed.wait_for(
                lambda: self._batches or self._is_woken, None if timeout_ms < 0 else timeout_ms / 1000
            )
            self.waiting_thread = None
            if self._is_woken:
                self._is_woken = False
                return _abi.BIRD_ERR_WOKEN
            return _abi.BIRD_OK if self._batches else _abi.BIRD_ERR_TIMEOUT

    def bird_queue_wake(self, queue: Any) -> int:
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()
        return _abi.BIRD_OK

    def bird_queue_drain(self, queue: Any, batch: Any, records: Any, count: Any, stride: Any) -> int:
        with self._changed:
            if not self._batches:
                return self._status("bird_queue_drain")
            maker = self._batches.popleft()
        handle = self._new_handle()
        self._held[handle] = maker
        batch._obj.value = handle
        records._obj.value, count._obj.value = maker.array()
        stride._obj.value = maker.stride
        return _abi.BIRD_OK

    def bird_batch_release(self, batch: Any) -> int:
        del self._held[batch.value]
        return _abi.BIRD_OK

    def bird_client_statistics(self, client: Any, statistics: Any) -> int:
        counters = ctypes.cast(statistics, ctypes.POINTER(_abi.StatisticsCounters)).contents
        assert counters.struct_size == ctypes.sizeof(_abi.StatisticsCounters)
        counters.events_delivered = 7
        return _abi.BIRD_OK
