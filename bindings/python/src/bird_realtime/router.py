"""Takes decoded records to the handlers: the hot path, and what each other kind of record does on its way."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any, Callable, Optional

from . import _abi, _json, logs
from ._records import MEMORY, Fields, Records
from .authorization import Requests
from .bindings import Bindings
from .channel import Channel, MemberChannel, PresenceChannel
from .connection import Connection
from .errors import BirdRealtimeError
from .events import (
    UNPARSED,
    DecryptionFailed,
    ErrorReported,
    Event,
    Member,
    MemberEvent,
    StateChange,
    SubscriptionFailed,
    SubscriptionSucceeded,
)

logger = logs.package

CLIENT_EVENT_PREFIX = "client-"

HandlerErrorHook = Callable[[Exception, object], object]
#: (bird_error or 0, status) -> exception
Failure = Callable[[int, int], BirdRealtimeError]
#: bird_members or None -> roster
ReadMembers = Callable[[Optional[int]], dict[str, Any]]


class Completion:
    """The end of an operation, once it has come."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: BirdRealtimeError | None = None
        #: of a signin that has succeeded
        self.member: Member | None = None


class HandlerErrors:
    """Exceptions of handlers: logged, given to the program's hook, and never in the way of other handlers."""

    def __init__(self, hook: HandlerErrorHook | None) -> None:
        self._hook = hook

    def report(self, error: BaseException, argument: object) -> None:
        logger.error("A handler failed on %r", argument, exc_info=error)
        if self._hook is None or not isinstance(error, Exception):
            return
        try:
            self._hook(error, argument)
        except Exception:
            logger.exception("on_handler_error failed")


class Router:
    """The tables by which records find their handlers. Only the delivering thread calls ``deliver``."""

    def __init__(
        self,
        connection: Connection,
        requests: Requests,
        errors: HandlerErrors,
        failure: Failure,
        read_members: ReadMembers,
    ) -> None:
        self.channels: dict[str, Channel] = {}
        self.by_tag: dict[int, Channel] = {}
        self.member: MemberChannel | None = None
        #: names of interned events
        self.names: dict[int, str] = {}
        self.completions: dict[int, Completion] = {}
        self._connection = connection
        self._requests = requests
        self.errors = errors
        self._failure = failure
        self._read_members = read_members
        self._signed_in_member: Member | None = None
        self._is_silent = False
        #: calls that the delivering thread makes before it goes on
        self.posted: deque[Callable[[], None]] = deque()
        self._others: dict[int, Callable[[Fields], None]] = {
            _abi.BIRD_RECORD_SUBSCRIBED: self._subscribed,
            _abi.BIRD_RECORD_SUBSCRIPTION_ERROR: self._subscription_failed,
            _abi.BIRD_RECORD_MEMBER_ADDED: self._member_added,
            _abi.BIRD_RECORD_MEMBER_REMOVED: self._member_removed,
            _abi.BIRD_RECORD_CONNECTION_COUNT: self._connection_count,
            _abi.BIRD_RECORD_STATE: self._state_changed,
            _abi.BIRD_RECORD_ERROR: self._connection_error,
            _abi.BIRD_RECORD_SIGNIN_ERROR: self._signin_failed,
            _abi.BIRD_RECORD_COMPLETION: self._completed,
            _abi.BIRD_RECORD_REQUEST: self._asked,
            _abi.BIRD_RECORD_SIGNED_IN: self._signed_in,
            _abi.BIRD_RECORD_CONNECTION_LOST: self._connection_lost,
            _abi.BIRD_RECORD_CONNECTING_IN: self._connecting_in,
            _abi.BIRD_RECORD_DECRYPTION_ERROR: self._decryption_failed,
            _abi.BIRD_RECORD_WATCHLIST: self._watchlist,
            _abi.BIRD_RECORD_LOG: self._logged,
        }

    def silence(self) -> None:
        """No handler is called any more."""
        self._is_silent = True
        self.posted.clear()
        for channel in list(self.by_tag.values()):
            channel._forget_routes()
        self.by_tag.clear()
        self.channels.clear()

    def deliver(self, records: Records) -> None:
        """Runs the handlers of each record. An exception that is no Exception (Ctrl-C) leaves it; calling it again with
        the same records goes on behind the one that was interrupted."""
        # Every line of this loop costs each event. What the event before had is not looked up again: its route holds as
        # long as the channel's routes are the same object.
        event_kind, memory = _abi.BIRD_RECORD_EVENT, MEMORY
        by_tag, names, posted = self.by_tag, self.names, self.posted
        channel: Channel | None = None
        last_tag: int | None = None
        last_id: int | None = None
        routes: dict[str, Bindings] = {}
        may_have_sender = False
        for kind, tag, data, length, event_id in records.brief:
            if kind != event_kind:
                self._deliver_other(records.current())
                continue
            if event_id != last_id or tag != last_tag or channel is None or channel._routes is not routes:
                channel = by_tag.get(tag) or self._channel(records.current())
                if channel is None:
                    continue
                name = names.get(event_id) or records.current().event_text
                routes = channel._routes
                may_have_sender = name.startswith(CLIENT_EVENT_PREFIX)
                route = routes.get(name)
                if route is None:
                    route = channel._default_route
                # What has no number has a name, which has to be read each time.
                last_tag, last_id = tag or None, event_id or None
            if not route:
                continue
            event = Event()
            event.name = name
            event.channel = channel
            event.raw = memory[data : data + length]
            event._data = UNPARSED if length or records.current().data_kind else None
            if may_have_sender:
                event._sender = records.current().sender_text
            for binding in route:
                handler = binding.handler
                if handler is not None:
                    try:
                        handler(event)
                    except Exception as error:
                        self.errors.report(error, event)
            if posted:
                self.run_posted()

    def _deliver_other(self, fields: Fields) -> None:
        other = self._others.get(fields.kind)
        if other is not None and not self._is_silent:
            other(fields)
        self.run_posted()

    def run_posted(self) -> None:
        """Makes the calls that wait now."""
        for _ in range(len(self.posted)):
            # One call may make others in its turn.
            if self.posted:
                self.posted.popleft()()

    def emit(self, bindings: Bindings, argument: object) -> bool:
        """Runs handlers; False if there was none."""
        was_called = False
        for binding in bindings:
            handler = binding.handler
            if handler is not None:
                was_called = True
                try:
                    handler(argument)
                except Exception as error:
                    self.errors.report(error, argument)
        return was_called

    def emit_connection(self, event: str, argument: object) -> None:
        was_called = self.emit(self._connection._named.get(event, ()), argument)
        if isinstance(argument, BirdRealtimeError) and not was_called:
            logger.warning("%s without a handler: %s", event, argument)

    def emit_channel(self, channel: Channel, event: Event) -> bool:
        return self.emit(channel._of_event(event.name), event)

    def emit_status(self, channel: Channel, status: SubscriptionSucceeded | SubscriptionFailed) -> None:
        bindings = channel._announce(status)
        # Who was bound before, and has yet to be told how things stood, is told that first.
        self.run_posted()
        was_called = self.tell_status(channel, bindings, status)
        if isinstance(status, SubscriptionFailed) and not was_called:
            logger.warning("%s: %s", channel.name, status.error)

    def tell_status(
        self, channel: Channel, bindings: Bindings, status: SubscriptionSucceeded | SubscriptionFailed
    ) -> bool:
        try:
            return self.emit(bindings, status)
        finally:
            channel._told()

    def _channel(self, fields: Fields) -> Channel | None:
        """The channel of a record; one that was made before the channel had its tag is found by name."""
        if fields.channel_tag:
            return self.by_tag.get(fields.channel_tag)
        return self.channels.get(fields.channel_text)

    def _subscribed(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if channel is None:
            return
        detail = _abi.SubscriptionDetail.from_address(fields.detail)
        event = SubscriptionSucceeded(
            channel,
            fields.payload,
            fields.data_kind,
            is_resubscribe=bool(detail.is_resubscribe),
            interrupted=detail.interrupted_ms / 1000,
            members=self._read_members(detail.members),
            my_id=_sized(detail, "my_id", detail.my_id_length) or None,
        )
        channel._load(event)
        self.emit_status(channel, event)

    def _subscription_failed(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if channel is None:
            return
        detail = _abi.SubscriptionDetail.from_address(fields.detail)
        error = self._failure(detail.error or 0, _abi.BIRD_ERR_DENIED)
        channel._reset()
        status = SubscriptionFailed(
            channel, fields.payload, fields.data_kind, error, will_retry=bool(detail.will_retry)
        )
        self.emit_status(channel, status)

    def _member_event(self, name: str, channel: PresenceChannel, fields: Fields) -> MemberEvent:
        detail = _abi.MemberDetail.from_address(fields.detail)
        member_id = _sized(detail, "id", detail.id_length)
        return MemberEvent(name, channel, fields.payload, fields.data_kind, member_id)

    def _member_added(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if isinstance(channel, PresenceChannel):
            event = self._member_event("bird:member_added", channel, fields)
            channel._members[event.member.member_id] = event.member.member_info
            self.emit_channel(channel, event)

    def _member_removed(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if isinstance(channel, PresenceChannel):
            event = self._member_event("bird:member_removed", channel, fields)
            channel._members.pop(event.member.member_id, None)
            self.emit_channel(channel, event)

    def _connection_count(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if channel is not None:
            event = Event()
            event._fill("bird:connection_count", channel, fields.payload, fields.data_kind)
            self.emit_channel(channel, event)

    def _decryption_failed(self, fields: Fields) -> None:
        channel = self._channel(fields)
        if channel is None:
            return
        detail = _abi.FailureDetail.from_address(fields.detail)
        error = self._failure(detail.error or 0, _abi.BIRD_ERR_DECRYPTION)
        if not self.emit_channel(channel, DecryptionFailed(channel, fields.payload, fields.data_kind, error)):
            logger.warning("%s: %s", channel.name, error)

    def _state_changed(self, fields: Fields) -> None:
        change = _state_change(fields.detail)
        self._connection._note(change)
        if change.previous == "connected":
            for channel in list(self.channels.values()):
                channel._reset()
            if self.member is not None:
                self.member.watchlist._forget()
        try:
            self.emit_connection("state_change", change)
            self.emit_connection(change.current, change)
        finally:
            self._connection._told_state = change.current

    def _connecting_in(self, fields: Fields) -> None:
        self.emit_connection("connecting_in", _state_change(fields.detail))

    def _connection_lost(self, fields: Fields) -> None:
        self.emit_connection("connection_lost", None)

    def _connection_error(self, fields: Fields) -> None:
        detail = _abi.FailureDetail.from_address(fields.detail)
        error = self._failure(detail.error or 0, _abi.BIRD_ERR_SERVER)
        channel = self._channel(fields)
        if channel is not None:
            self.emit_channel(channel, ErrorReported(channel, fields.payload, fields.data_kind, error))
        self.emit_connection("error", error)

    def _signin_failed(self, fields: Fields) -> None:
        detail = _abi.FailureDetail.from_address(fields.detail)
        self.emit_connection("signin_error", self._failure(detail.error or 0, _abi.BIRD_ERR_AUTH))

    def _signed_in(self, fields: Fields) -> None:
        data = _json.value_or_text(fields.payload)
        member_info = data.get("member_info") if isinstance(data, dict) else None
        detail = _abi.MemberDetail.from_address(fields.detail)
        member = Member(_sized(detail, "id", detail.id_length), member_info)
        self._signed_in_member = member
        if self.member is not None:
            self.member.name = f"#server-to-user-{member.member_id}"
            self.member.watchlist._forget()
        self.emit_connection("signed_in", member)

    def _watchlist(self, fields: Fields) -> None:
        if self.member is None:
            return
        name = fields.event_text
        ids = _json.parse(fields.payload.decode())
        bindings = self.member.watchlist._announce(name, ids)
        self.run_posted()
        self.emit(bindings, ids)

    def _logged(self, fields: Fields) -> None:
        logs.emit(_abi.LogEntryDetail.from_address(fields.detail), fields.payload.decode())

    def _completed(self, fields: Fields) -> None:
        completion = self.completions.pop(fields.operation_tag, None)
        if completion is None:
            return
        detail = _abi.CompletionDetail.from_address(fields.detail)
        if detail.status != _abi.BIRD_OK:
            completion.error = self._failure(detail.error or 0, detail.status)
        elif detail.operation == _abi.BIRD_OPERATION_SIGNIN:
            # Its record came before this one.
            completion.member = self._signed_in_member
        completion.is_done = True

    def _asked(self, fields: Fields) -> None:
        self._requests.answer(_abi.QuestionDetail.from_address(fields.detail))


def _sized(detail: ctypes.Structure, field: str, length: int) -> str:
    """A string of a detail that may contain a NUL, at which ctypes would cut it."""
    address = ctypes.addressof(detail) + getattr(type(detail), field).offset
    start = ctypes.c_void_p.from_address(address).value or 0
    text: bytes = MEMORY[start : start + length]
    return text.decode()


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def _state_change(address: int) -> StateChange:
    detail = _abi.StateChangeDetail.from_address(address)
    return StateChange(
        previous=_abi.STATE_NAMES.get(detail.previous, f"state {detail.previous}"),
        current=_abi.STATE_NAMES.get(detail.current, f"state {detail.current}"),
        reason=detail.reason,
        reason_text=_text(detail.reason_text),
        code=detail.close_code or None,
        attempt=detail.attempt,
        delay=None if detail.delay_ms < 0 else detail.delay_ms / 1000,
        connection_id=_text(detail.connection_id) or None,
        policy=_text(detail.policy) or None,
    )
