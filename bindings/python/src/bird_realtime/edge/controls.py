"""Test controls: what a test may look at and do to a running edge. Not part of the Bird protocol.

The same methods serve a test in this process, through `bird_realtime.testing.EdgeServer`, and a test anywhere
else, through `control_api`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .config import MASTER_KEY_BYTES, App
from .faults import Answer, AnswerFault, HttpFault, Target
from .hub import Effect
from .journal import Entry
from .jsontext import JSONTextError, dump, has_half_pair, parse
from .names import channel_problem, member_id_problem, published_event_problem

if TYPE_CHECKING:
    from .client_socket import ClientSocket
    from .server import Edge

_Result = TypeVar("_Result")
_Method = TypeVar("_Method", bound=Callable[..., Any])
_Choice = TypeVar("_Choice", bound=Enum)


class ControlError(ValueError):
    """A control that was used wrongly; the message names the argument."""


@dataclass(frozen=True)
class ConnectionInfo:
    """An open connection. `member_id` is its identity after signin."""

    connection_id: str
    channels: tuple[str, ...]
    member_id: str | None
    age_s: float


@dataclass(frozen=True)
class ChannelInfo:
    """An occupied channel; `member_ids` is empty unless it is a presence channel."""

    name: str
    connection_count: int
    member_ids: tuple[str, ...]


def control(method: _Method) -> _Method:
    """Marks a control and has it run on the edge's loop, whatever the thread of the caller."""

    @functools.wraps(method)
    def on_loop(self: Controls, *arguments: Any, **options: Any) -> Any:
        return self._on_loop(functools.partial(method, self, *arguments, **options))

    on_loop.is_control = True  # type: ignore[attr-defined]
    return cast(_Method, on_loop)


def look(method: _Method) -> _Method:
    """The same for a control that changes nothing."""
    on_loop = control(method)
    on_loop.only_looks = True  # type: ignore[attr-defined]
    return on_loop


class Controls:
    """The controls of `edge`. A `connection_id` of None means every open connection.

    Methods that act on connections return how many they acted on. A fault acts `times` times, or until
    `clear_faults` when `times` is None.
    """

    edge: Edge

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def _on_loop(self, action: Callable[[], _Result]) -> _Result:
        return action()

    # Looking

    @look
    def connections(self) -> list[ConnectionInfo]:
        """The open connections, oldest first."""
        now = time.monotonic()
        return [
            ConnectionInfo(c.connection_id, tuple(c.channels), c.identity, now - c.opened_at)
            for c in self.edge.hub.connections.values()
        ]

    @look
    def channels(self) -> list[ChannelInfo]:
        """The occupied channels, member channels included, sorted by name."""
        hub = self.edge.hub
        return [ChannelInfo(name, hub.connection_count(name), hub.member_ids(name)) for name in hub.channel_names()]

    @look
    def journal(self, kind: str | None = None, connection_id: str | None = None) -> list[Entry]:
        """What happened, oldest first: all of it, or one kind or one connection only; see `Entry`."""
        return [
            entry
            for entry in self.edge.journal.entries()
            if kind in (None, entry.kind) and connection_id in (None, entry.connection_id)
        ]

    # Being the customer's server

    @control
    def publish(
        self,
        event: str,
        channels: Sequence[str],
        data: object = None,
        *,
        data_json: str | None = None,
        exclude_connection_id: str | None = None,
    ) -> None:
        """Publishes `data`, any JSON value, or exactly the JSON text `data_json`; without either, no data."""
        _check("event", event, published_event_problem)
        if isinstance(channels, str):
            raise ControlError("channels: expected a list of names, not one string")
        for name in channels:
            _check("channels", name, channel_problem)
        text = _data_text(data, data_json)
        self._apply(self.edge.hub.publish(event, channels, text, time.monotonic(), exclude_connection_id))

    @control
    def send_to_member(self, member_id: str, event: str, data: object = None, *, data_json: str | None = None) -> None:
        """Sends an event to a member over the member channel; nobody connected means that it is lost."""
        _check("member_id", member_id, member_id_problem)
        _check("event", event, published_event_problem)
        self._apply(self.edge.hub.send_to_member(member_id, event, _data_text(data, data_json)))

    @control
    def disconnect_member(self, member_id: str) -> None:
        """Closes every connection that is signed in as the member with 4009."""
        _check("member_id", member_id, member_id_problem)
        self._apply(self.edge.hub.disconnect_member(member_id, time.monotonic()))

    # Ending and injecting

    @control
    def drop_connections(self, connection_id: str | None = None, *, reset: bool = True) -> int:
        """Ends the TCP streams without a close frame: by RST, or by FIN when `reset` is false. When this returns, the
        edge has forgotten the connections."""
        ids = self._ids(connection_id)
        for id_ in ids:
            self._apply(self.edge.hub.leave(id_, time.monotonic()))
            self.edge.clients.sockets[id_].drop(reset=reset)
        return len(ids)

    @control
    def close_connections(self, code: int, reason: str = "", *, connection_id: str | None = None) -> int:
        """Closes with a close frame; code 1005 sends one without a code."""
        if not 1000 <= code <= 4999:
            raise ControlError("code: a close code is between 1000 and 4999")
        ids = self._ids(connection_id)
        for id_ in ids:
            self._apply(self.edge.hub.terminate(id_, code, reason, time.monotonic()))
        return len(ids)

    @control
    def inject_text(self, text: str, connection_id: str | None = None) -> int:
        """Sends `text` as a text message, whatever it says."""
        return self._inject(connection_id, lambda socket: socket.send_text(text.encode(errors="surrogatepass")))

    @control
    def inject_binary(self, data: bytes, connection_id: str | None = None) -> int:
        """Sends `data` as a binary message."""
        return self._inject(connection_id, lambda socket: socket.send_binary(data))

    @control
    def inject_raw(self, data: bytes, connection_id: str | None = None) -> int:
        """Writes `data` on the stream itself, past the WebSocket layer."""
        return self._inject(connection_id, lambda socket: socket.write_raw(data))

    # Answers on the wire that are late or never come

    @control
    def withhold(self, answer: str, *, channel: str | None = None, times: int | None = None) -> None:
        """Ignores the requests behind an answer: `handshake`, `pong`, `subscribe` or `signin`.

        With `channel`, only subscribes to that channel.
        """
        self._fault_answer(answer, AnswerFault(), channel, times)

    @control
    def delay(self, answer: str, delay_s: float, *, channel: str | None = None, times: int | None = None) -> None:
        """Handles the requests behind an answer only after `delay_s` seconds; see `withhold`."""
        if delay_s < 0:
            raise ControlError("delay_s: must not be negative")
        self._fault_answer(answer, AnswerFault(delay_s), channel, times)

    # HTTP gone wrong

    @control
    def fail_http(
        self,
        target: str,
        *,
        delay_s: float = 0.0,
        hang: bool = False,
        status: int | None = None,
        location: str | None = None,
        retry_after: str | None = None,
        content_type: str = "text/plain",
        headers: Mapping[str, str] | None = None,
        body: str = "",
        wrong_signature: bool = False,
        times: int | None = None,
    ) -> None:
        """Lets requests fail: `upgrade`, `rest`, `auth` or `member_auth`.

        First `delay_s` seconds pass. Then, with `status`, this answer is sent, with the headers given; a
        `body` without one goes out as 200. `hang` never answers. `wrong_signature` is for the auth targets.
        """
        if delay_s < 0:
            raise ControlError("delay_s: must not be negative")
        if status is not None and not 200 <= status <= 599:
            raise ControlError("status: must be between 200 and 599")
        chosen = _choice(Target, "target", target)
        if wrong_signature and chosen not in (Target.AUTH, Target.MEMBER_AUTH):
            raise ControlError("wrong_signature: only the targets auth and member_auth sign")
        if status is None and (body or location or retry_after or headers):
            status = 200
        named = {"location": location, "retry-after": retry_after, "content-type": content_type}
        all_headers = {name: value for name, value in named.items() if value is not None} | dict(headers or {})
        fault = HttpFault(delay_s, hang, status, all_headers, body.encode(), wrong_signature)
        self.edge.faults.set_http(chosen, fault, _times(times))
        self._changed(f"fail_http {target}")

    @control
    def clear_faults(self) -> None:
        """Ends every `withhold`, `delay` and `fail_http`; what is already late or hanging stays so."""
        self.edge.faults.clear()
        self._changed("clear_faults")

    # Settings

    @control
    def set_double_encoding(self, on: bool) -> None:
        """Whether `data` travels as a string of JSON (the start value) or as plain JSON."""
        self.edge.clients.double_encoding = on
        self._changed(f"set_double_encoding {on}")

    @control
    def set_strict(self, on: bool) -> None:
        """Whether a double subscribe and a needless unsubscribe are refused (the start value)."""
        self.edge.hub.strict = on
        self._changed(f"set_strict {on}")

    @control
    def set_activity_timeout(self, seconds: int) -> None:
        """The activity timeout that later handshakes carry."""
        if seconds <= 0:
            raise ControlError("seconds: must be more than 0")
        self.edge.hub.activity_timeout_s = seconds
        self._changed(f"set_activity_timeout {seconds}")

    @control
    def set_authorized_deadline(self, seconds: float) -> None:
        """How long later connections have to prove themselves while the app asks for authorized connections."""
        self.edge.clients.authorized_deadline_s = self._valid("authorized_deadline_s", seconds)
        self._changed(f"set_authorized_deadline {seconds}")

    @control
    def set_client_events(self, *, per_s: int | None = None, sender_key: str | None = None) -> None:
        """How many client events a connection may send in a second, and the top-level key under which those on
        presence channels carry the sender's member id; what is left out stays."""
        if per_s is not None:
            self.edge.hub.client_events_per_s = self._valid("client_events_per_s", per_s)
        if sender_key is not None:
            self.edge.hub.client_event_sender_key = self._valid("client_event_sender_key", sender_key)
        self._changed(f"set_client_events {per_s} {sender_key}")

    @control
    def set_cache_ttl(self, seconds: float) -> None:
        """How long a cache channel keeps its last event, what it holds now included."""
        self.edge.hub.cache.ttl_s = self._valid("cache_ttl_s", seconds)
        self._changed(f"set_cache_ttl {seconds}")

    @control
    def clear_cache(self) -> None:
        """Forgets the last event of every cache channel."""
        self.edge.hub.cache.clear()
        self._changed("clear_cache")

    @control
    def update_app(
        self,
        *,
        client_events: bool | None = None,
        connection_counting: bool | None = None,
        connection_count_events: bool | None = None,
        watchlist_events: bool | None = None,
        authorized_connections: bool | None = None,
        status: str | None = None,
        connection_quota: int | None = None,
    ) -> None:
        """Changes the app record; what is left out stays. Open connections are left alone."""
        changes: dict[str, Any] = {
            "client_events": client_events,
            "connection_counting": connection_counting,
            "connection_count_events": connection_count_events,
            "watchlist_events": watchlist_events,
            "authorized_connections": authorized_connections,
            "status": status,
            "connection_quota": connection_quota,
        }
        app: App = replace(self.edge.hub.app, **{name: value for name, value in changes.items() if value is not None})
        self.edge.hub.app = app
        self._changed(f"update_app {app}")

    @control
    def add_key(self, app_key: str, app_secret: str) -> None:
        """Makes one more app key live."""
        if not app_key or ":" in app_key:
            raise ControlError("app_key: must not be empty or contain a colon")
        self.edge.hub.keys[app_key] = app_secret
        self._changed(f"add_key {app_key}")

    @control
    def revoke_key(self, app_key: str) -> None:
        """Revokes a live app key: new connections and signatures with it are refused at once."""
        if self.edge.hub.keys.pop(app_key, None) is None:
            raise ControlError(f"app_key: {app_key} is not a live key")
        self._changed(f"revoke_key {app_key}")

    @control
    def deny_channel(self, channel: str) -> None:
        """Has the auth backend refuse the channel with 403."""
        self.edge.auth.denied_channels.add(channel)
        self._changed(f"deny_channel {channel}")

    @control
    def allow_channel(self, channel: str) -> None:
        """Undoes `deny_channel`."""
        self.edge.auth.denied_channels.discard(channel)
        self._changed(f"allow_channel {channel}")

    @control
    def set_member(self, member_id: str, member_info: object = None, *, default: bool = False) -> None:
        """Adds or changes a member of the auth backend; `default` makes it that of calls that name none."""
        _check("member_id", member_id, member_id_problem)
        self.edge.auth.members[member_id] = member_info
        if default:
            self.edge.auth.default_member_id = member_id
        self._changed(f"set_member {member_id}")

    @control
    def set_watchlist(self, member_id: str, watchlist: Sequence[str]) -> None:
        """Has the auth backend sign this watchlist for the member; it counts from the next signin on."""
        for id_ in (member_id, *watchlist):
            _check("watchlist", id_, member_id_problem)
        self.edge.auth.watchlists[member_id] = list(watchlist)
        self._changed(f"set_watchlist {member_id}")

    @control
    def set_encryption_master_key(self, key: bytes) -> None:
        """Rotates the key from which the auth backend derives the secrets of encrypted channels."""
        if len(key) != MASTER_KEY_BYTES:
            raise ControlError(f"key: must be {MASTER_KEY_BYTES} bytes, not {len(key)}")
        self.edge.auth.encryption_master_key = key
        self._changed("set_encryption_master_key")

    def _valid(self, option: str, value: _Result) -> _Result:
        """The value, if the option of this name accepts it."""
        replace(self.edge.config, **{option: value})  # type: ignore[arg-type]
        return value

    def _ids(self, connection_id: str | None) -> list[str]:
        open_ids = list(self.edge.hub.connections)
        if connection_id is None:
            return open_ids
        if connection_id not in open_ids:
            raise ControlError(f"connection_id: {connection_id} is not open; open are {open_ids}")
        return [connection_id]

    def _inject(self, connection_id: str | None, send: Callable[[ClientSocket], None]) -> int:
        ids = self._ids(connection_id)
        for id_ in ids:
            send(self.edge.clients.sockets[id_])
        return len(ids)

    def _fault_answer(self, answer: str, fault: AnswerFault, channel: str | None, times: int | None) -> None:
        chosen = _choice(Answer, "answer", answer)
        if channel is not None and chosen is not Answer.SUBSCRIBE:
            raise ControlError("channel: only the answer subscribe belongs to a channel")
        self.edge.faults.set_answer(chosen, fault, channel, _times(times))
        self._changed(f"{answer} {fault}")

    def _apply(self, effects: list[Effect]) -> None:
        self.edge.clients.apply(effects)

    def _changed(self, text: str) -> None:
        self.edge.journal.add("changed", text=text)


def _check(argument: str, value: str, problem_of: Callable[[str], str | None]) -> None:
    problem = problem_of(value)
    if problem is not None:
        raise ControlError(f"{argument}: {value!r}: {problem}")


def _choice(choices: type[_Choice], argument: str, value: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        names = ", ".join(choice.value for choice in choices)
        raise ControlError(f"{argument}: {value!r} is none of {names}") from None


def _times(times: int | None) -> int | None:
    if times is not None and times < 1:
        raise ControlError("times: must be at least 1, or left out")
    return times


def _data_text(data: object, data_json: str | None) -> str | None:
    if data_json is None:
        text = None if data is None else dump(data)
    elif data is not None:
        raise ControlError("data_json: give either data or data_json")
    else:
        text = data_json
        try:
            parse(text)
        except JSONTextError as error:
            raise ControlError(f"data_json: {error}") from None
    if text is not None and has_half_pair(text):
        raise ControlError("data: has half of a surrogate pair")
    return text
