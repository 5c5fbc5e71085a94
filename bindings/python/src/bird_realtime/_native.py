"""Calls into the library: a client's handles, the conversion of arguments and of errors."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

from . import _abi, _json
from ._handle import Handle
from ._library import library
from ._records import Records
from .errors import BirdRealtimeError, ForkedClient, InvalidArgument, class_of
from .options import Value

_TEXT_SIZE = 256


def text_argument(value: object, field: str) -> bytes:
    """A str as the library takes it. A NUL would silently end it there."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{field} must be a str, not {type(value).__name__}", field=field)
    if "\0" in value:
        raise InvalidArgument(f"{field} contains a NUL character", field=field)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{field} is not valid Unicode: {error}", field=field) from error


class _Batch:
    """The outputs of bird_queue_drain."""

    def __init__(self) -> None:
        self.handle, self.records, self.count, self.stride = c_void_p(), c_void_p(), c_size_t(), c_size_t()
        self.outputs = tuple(byref(output) for output in (self.handle, self.records, self.count, self.stride))


class Native:
    """The handles of one client and its queue. Ended once, by the thread that delivers, or by none if another process
    did. The queue is used by that thread alone, but for a wake, which a queue that has gone ignores."""

    def __init__(self, app_key: str, options: Mapping[str, Value], auth_headers: Mapping[str, str]) -> None:
        self.lib = library()
        self.process_id = os.getpid()
        self.queue = c_void_p()
        self.is_destroyed = False
        self._channels: set[Handle] = set()
        self._batch = _Batch()
        self._records: Records | None = None
        made = c_void_p()
        self.check(self.lib.bird_options_create(byref(made)))
        settings = Handle(made, self.lib.bird_options_destroy)
        try:
            self._configure(settings, app_key, options, auth_headers)
            self.client = self._create(settings)
        finally:
            settings.end(_abi.BIRD_ERR_HANDLE)

    def _configure(
        self, settings: Handle, app_key: str, options: Mapping[str, Value], auth_headers: Mapping[str, str]
    ) -> None:
        for key, value in {"app_key": app_key, **options}.items():
            self._set(settings, "bird_options_set", key, value)
        for name, value in auth_headers.items():
            self.call(
                settings,
                "bird_options_set_auth_header",
                text_argument(name, "auth_headers"),
                text_argument(value, "auth_headers"),
            )

    def _create(self, settings: Handle) -> Handle:
        """The client, with a queue of its own."""
        client = c_void_p()
        self.check(self.lib.bird_queue_create(byref(self.queue)))
        try:
            self.check(settings.call(self.lib.bird_options_set_queue, self.queue))
            self.call(settings, "bird_client_create", byref(client))
        except BaseException:
            self.lib.bird_queue_destroy(self.queue)
            raise
        return Handle(client, self._free)

    def _free(self, client: c_void_p) -> None:
        self.lib.bird_client_destroy(client)
        self.lib.bird_queue_destroy(self.queue)

    def _set(self, handle: Handle, function: str, key: str, value: Value) -> None:
        if isinstance(value, int):
            self.call(handle, f"{function}_int", key.encode(), value)
        else:
            self.call(handle, function, key.encode(), text_argument(value, key))

    def change(self, key: str, value: Value) -> None:
        self._set(self.client, "bird_client_set", key, value)

    @property
    def is_forked(self) -> bool:
        """True in a process that got this client by fork: its threads are not here, and its locks may be held for
        ever."""
        return os.getpid() != self.process_id

    def check_process(self) -> None:
        if self.is_forked:
            raise ForkedClient(f"this client was created in process {self.process_id}; create one after the fork")

    def call(self, handle: Handle, function: str, *arguments: Any) -> None:
        """Calls a function that ends with an error out-parameter."""
        error = c_void_p()
        status = handle.call(getattr(self.lib, function), *arguments, byref(error))
        if status != _abi.BIRD_OK:
            failure = self.failure(error.value, status)
            self.lib.bird_error_free(error)
            raise failure

    def command(self, function: str, *arguments: Any) -> None:
        """Calls a function of the client that has only a status to say."""
        self.check(self.client.call(getattr(self.lib, function), *arguments))

    def check(self, status: int, hint: str = "") -> None:
        """Raises what a status means; hint says more than the status can."""
        if status != _abi.BIRD_OK:
            raise self.failure(None, status, hint)

    def failure(self, error: int | None, status: int, hint: str = "") -> BirdRealtimeError:
        """The exception of a bird_error (borrowed), or of a bare status when there is none."""
        lib = self.lib
        if not error:
            message = hint or lib.bird_status_message(status).decode()
            return class_of(status)(message, status=status, retriable=status == _abi.BIRD_ERR_FULL)
        status = lib.bird_error_status(error)
        return class_of(status)(
            lib.bird_error_message(error).decode(),
            status=status,
            area=_abi.AREA_NAMES.get(lib.bird_error_area(error), ""),
            field=lib.bird_error_field(error).decode(),
            code=lib.bird_error_code(error) or None,
            http_status=lib.bird_error_http_status(error) or None,
            curl_code=lib.bird_error_curl_code(error) or None,
            endpoint=lib.bird_error_endpoint(error).decode(),
            channel=lib.bird_error_channel(error).decode(),
            retriable=bool(lib.bird_error_retriable(error)),
        )

    def number(self, handle: Handle, function: str) -> int:
        value = c_int32()
        self.check(handle.call(getattr(self.lib, function), byref(value)))
        return value.value

    def text(self, handle: Handle, function: str) -> str:
        size = _TEXT_SIZE
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = c_size_t()
            status = handle.call(getattr(self.lib, function), buffer, size, byref(length))
            if status != _abi.BIRD_ERR_SPACE:
                self.check(status)
                return buffer.raw[: length.value].decode()
            size = length.value + 1

    def members(self, roster: int | None) -> dict[str, Any]:
        """member_id -> member_info of a bird_members (borrowed), in its order; None: there is none."""
        lib = self.lib
        members = {}
        for index in range(lib.bird_members_count(roster)):
            # An id may contain a NUL.
            member_id = ctypes.string_at(lib.bird_members_id(roster, index), lib.bird_members_id_length(roster, index))
            members[member_id.decode()] = _json.value_or_none(lib.bird_members_info(roster, index))
        return members

    def intern(self, event: bytes) -> int:
        event_id = c_uint32()
        self.call(self.client, "bird_client_intern", event, byref(event_id))
        return event_id.value

    def hold(self, channel: c_void_p, tag: int) -> Handle:
        """Takes over a reference to a channel, whose records carry this tag from now on."""
        handle = Handle(channel, self.lib.bird_channel_release)
        self._channels.add(handle)
        try:
            # Asked only now: an end that did not find the handle here was before.
            self.check(_abi.BIRD_ERR_CLOSED if self.is_destroyed else handle.call(self.lib.bird_channel_set_tag, tag))
        except BaseException:
            self.give_back(handle)
            raise
        return handle

    def give_back(self, channel: Handle) -> None:
        self._channels.discard(channel)
        channel.end(_abi.BIRD_ERR_UNSUBSCRIBED)

    def wait(self, timeout_ms: int) -> bool:
        """Waits for records; False: the time has passed or wake() was called."""
        status: int = self.lib.bird_queue_wait(self.queue, timeout_ms)
        # A signal handler may have ended the client around the wait that it has interrupted.
        if status in (_abi.BIRD_ERR_TIMEOUT, _abi.BIRD_ERR_WOKEN) or self.is_destroyed:
            return False
        self.check(status)
        return True

    def wake(self) -> None:
        self.lib.bird_queue_wake(self.queue)

    def take(self) -> Records | None:
        """The records of the oldest batch that waits, if any; the same ones until release().

        What C has written and what is still to be iterated are kept here, so that a Ctrl-C in between loses nothing.
        """
        batch = self._batch
        if not batch.handle:
            self._records = None
            self.check(self.lib.bird_queue_drain(self.queue, *batch.outputs))
            if not batch.handle:
                return None
        if self._records is None:
            self._records = Records(batch.records.value or 0, batch.count.value, batch.stride.value)
        return self._records

    def release(self) -> None:
        """The records of the batch have been dealt with."""
        handle = c_void_p(self._batch.handle.value)
        # Before it is invalid: a Ctrl-C in between may leak the batch, but never have it used again.
        self._batch.handle.value = None
        self.lib.bird_batch_release(handle)

    def authorize(self, request: int, auth: str, member_data: str | None, shared_secret: str | None) -> None:
        def optional(value: str | None, field: str) -> bytes | None:
            return None if value is None else text_argument(value, field)

        self.call(
            Handle(request),
            "bird_request_authorize",
            text_argument(auth, "auth"),
            optional(member_data, "member_data"),
            optional(shared_secret, "shared_secret"),
        )

    def add_headers(self, request: int, headers: Mapping[str, str]) -> None:
        given = (_abi.Header * len(headers))()
        for header, (name, value) in zip(given, headers.items()):
            header.name = text_argument(name, "a header's name")
            header.value = text_argument(value, f"the header {name}")
        self.call(Handle(request), "bird_request_headers", given, len(headers))

    def proceed(self, request: int, delay_ms: int) -> None:
        self.call(Handle(request), "bird_request_proceed", delay_ms)

    def refuse(self, request: int, message: str, retriable: bool) -> None:
        self.call(Handle(request), "bird_request_fail", retriable, c_char_p(message.encode(errors="replace")))

    def destroy(self) -> None:
        """Ends the client at once. Nothing else may be draining the queue."""
        if not self.is_destroyed:
            self.is_destroyed = True
            if self._batch.handle:
                self.release()
            is_forked = self.is_forked
            for handle in (*self._channels, self.client):
                handle.end(_abi.BIRD_ERR_CLOSED, at_once=is_forked)
            self._channels.clear()
