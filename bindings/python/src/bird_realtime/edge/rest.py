"""The REST API that the official server SDKs speak (Bird protocol §20), on top of the hub and without I/O."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .hub import Effect, Hub
from .idempotency import IdempotencyCache, InProgress, KeyReused
from .jsontext import JSONTextError, array_items, has_half_pair, object_members, parse
from .names import (
    Kind,
    channel_problem,
    kind_of,
    member_id_problem,
    published_event_problem,
)
from .replies import Call, Reply, json_reply

PUBLISH_CHANNELS_LIMIT = 100
BATCH_EVENTS_LIMIT = 10
DATA_LIMIT_BYTES = 10 * 1024
COUNTS = ("member_count", "connection_count")

_IDEMPOTENCY_IN_PROGRESS = "E01004"
_IDEMPOTENCY_REUSED = "E01005"


class RestError(Exception):
    """A refused request. Codes other than those of idempotency are the edge's own: E00 and the status."""

    def __init__(
        self,
        status: int,
        type_: str,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type_
        self.code = code or f"E00{status}"
        self.param = param


def _bad_request(message: str) -> RestError:
    return RestError(400, "bad_request_error", message)


def _invalid(param: str, message: str) -> RestError:
    return RestError(422, "validation_error", f"{param}: {message}", param=param)


@dataclass(frozen=True)
class _Event:
    event: str
    channels: tuple[str, ...]
    data: str | None
    exclude: str | None
    include: tuple[str, ...]


class RestApi:
    """Answers calls in two steps, so that a fault or a pause may come between them.

    `admit` checks credentials and the idempotency key; after None, `perform` or `abandon` must follow.
    """

    def __init__(self, hub: Hub, api_key: str | None) -> None:
        self._hub = hub
        self._api_key = api_key
        self._idempotency = IdempotencyCache()
        self._request_numbers = itertools.count(1)

    def admit(self, call: Call, now: float) -> Reply | None:
        """The reply if the call ends here: refused, or a replay of the first response."""
        try:
            self._authenticate(call)
            key = _idempotency_key(call)
            return None if key is None else self._claim(key, call, now)
        except RestError as error:
            return self.refuse(error)

    def perform(self, call: Call, now: float) -> tuple[Reply, list[Effect]]:
        """Acts on an admitted call."""
        effects: list[Effect] = []
        try:
            result, effects = self._route(call, now)
            headers = {"x-request-id": self._next_request_id()}
            reply = Reply(204, None, headers) if result is None else json_reply(200, result, headers)
        except RestError as error:
            reply = self.refuse(error)
        key = _idempotency_key(call)
        if key is not None:
            if reply.status < 300:
                self._idempotency.complete(key, reply)
            else:
                self._idempotency.release(key)
        return reply, effects

    def abandon(self, call: Call) -> None:
        """Gives up an admitted call that is not performed."""
        key = _idempotency_key(call)
        if key is not None:
            self._idempotency.release(key)

    def refuse(self, error: RestError) -> Reply:
        """The reply that reports `error` (Bird protocol §20.8)."""
        request_id = self._next_request_id()
        fields: dict[str, Any] = {
            "type": error.type,
            "code": error.code,
            "name": error.type.removesuffix("_error"),
            "message": str(error),
            "doc_url": f"urn:bird-realtime:edge:{error.code}",
            "request_id": request_id,
        }
        if error.param is not None:
            fields["details"] = [{"param": error.param, "message": str(error)}]
        return json_reply(error.status, {"error": fields}, {"x-request-id": request_id})

    def _next_request_id(self) -> str:
        return f"req_{next(self._request_numbers)}"

    def _authenticate(self, call: Call) -> None:
        token = call.bearer()
        if token is None:
            raise RestError(401, "auth_error", "Authorization needs a bearer API key")
        if self._api_key is not None and not _equal(token, self._api_key):
            raise RestError(401, "auth_error", "unknown API key")
        if call.path[:3] != ("v1", "realtime", "apps") or len(call.path) < 5:
            raise RestError(404, "not_found_error", "no such resource")
        if call.path[3] != self._hub.app.app_id:
            raise RestError(404, "not_found_error", f"no app {call.path[3]}")
        secret = self._hub.keys.get(call.header("x-realtime-key") or "")
        if secret is None or not _equal(secret, call.header("x-realtime-secret") or ""):
            raise RestError(401, "auth_error", "X-Realtime-Key and X-Realtime-Secret are no live key of the app")

    def _claim(self, key: str, call: Call, now: float) -> Reply | None:
        parts = [call.method.encode(), *(segment.encode() for segment in call.path), call.body]
        fingerprint = hashlib.sha256(b"\0".join(parts)).digest()
        try:
            return self._idempotency.claim(key, fingerprint, now)
        except InProgress:
            message = "the first request with this idempotency key is still in progress"
            raise RestError(409, "conflict_error", message, code=_IDEMPOTENCY_IN_PROGRESS) from None
        except KeyReused:
            message = "this idempotency key belongs to a different request"
            raise RestError(409, "conflict_error", message, code=_IDEMPOTENCY_REUSED) from None

    def _route(self, call: Call, now: float) -> tuple[dict[str, Any] | None, list[Effect]]:
        resource = call.path[4:]
        if call.method == "POST":
            if resource == ("events",):
                return self._publish(call, now)
            if resource == ("batch-events",):
                return self._publish_batch(call, now)
            if len(resource) == 3 and resource[0] == "members" and resource[2] == "events":
                return self._send_to_member(resource[1], call)
            if len(resource) == 3 and resource[0] == "members" and resource[2] == "disconnect":
                return None, self._hub.disconnect_member(_member_id(resource[1]), now)
        elif call.method == "GET":
            if resource == ("channels",):
                return self._list_channels(call), []
            if len(resource) == 2 and resource[0] == "channels":
                return self._get_channel(_channel(resource[1]), call), []
            if len(resource) == 3 and resource[0] == "channels" and resource[2] == "members":
                return self._list_members(_channel(resource[1])), []
        raise RestError(404, "not_found_error", f"no {call.method} on /{'/'.join(call.path)}")

    def _publish(self, call: Call, now: float) -> tuple[dict[str, Any], list[Effect]]:
        fields = _body(call)
        names = _names(fields, "channels")
        event = self._event(fields, names, "")
        effects = self._hub.publish(event.event, event.channels, event.data, now, event.exclude)
        if not event.include:
            return {}, effects
        rows = [{"name": name, **self._counts(name, event.include)} for name in sorted(set(event.channels))]
        return {"data": rows}, effects

    def _publish_batch(self, call: Call, now: float) -> tuple[dict[str, Any], list[Effect]]:
        fields = _body(call)
        try:
            items = array_items(fields.get("events", "null"))
        except JSONTextError as error:
            raise _invalid("events", str(error)) from None
        if not 1 <= len(items) <= BATCH_EVENTS_LIMIT:
            raise _invalid("events", f"a batch has 1 to {BATCH_EVENTS_LIMIT} events, not {len(items)}")
        events = []
        for index, item in enumerate(items):
            where = f"events[{index}]."
            item_fields = _fields(item, f"events[{index}]")
            events.append(self._event(item_fields, (_text(item_fields, "channel", where),), where))
        effects = [
            effect
            for event in events
            for effect in self._hub.publish(event.event, event.channels, event.data, now, event.exclude)
        ]
        if not any(event.include for event in events):
            return {}, effects
        rows = [{"channel": event.channels[0], **self._counts(event.channels[0], event.include)} for event in events]
        return {"data": rows}, effects

    def _event(self, fields: dict[str, str], channels: tuple[str, ...], where: str) -> _Event:
        """The checked event of a publish; `where` prefixes the names of its fields in errors."""
        event = _text(fields, "event", where)
        problem = published_event_problem(event)
        if problem is not None:
            raise _invalid(f"{where}event", problem)
        for index, name in enumerate(channels):
            problem = channel_problem(name)
            if problem is not None:
                raise _invalid(f"channels[{index}]" if not where else f"{where}channel", problem)
            if kind_of(name) is Kind.ENCRYPTED and len(channels) > 1:
                raise _invalid(f"channels[{index}]", "an encrypted channel must be the only one")
        exclude = None
        if "exclude_connection_id" in fields:
            exclude = _text(fields, "exclude_connection_id", where)
        include: list[Any] = parse(fields.get("include", "[]"))
        if not isinstance(include, list):
            raise _bad_request(f"{where}include: expected an array")
        return _Event(event, channels, _data(fields, where), exclude, self._include(include))

    def _send_to_member(self, member_id: str, call: Call) -> tuple[None, list[Effect]]:
        _member_id(member_id)
        fields = _body(call)
        event = _text(fields, "event", "")
        problem = published_event_problem(event)
        if problem is not None:
            raise _invalid("event", problem)
        return None, self._hub.send_to_member(member_id, event, _data(fields, ""))

    def _list_channels(self, call: Call) -> dict[str, Any]:
        prefix = next((value for key, value in call.query if key == "prefix"), "")
        include = self._include([value for key, value in call.query if key == "include"])
        if "member_count" in include and not prefix.startswith(Kind.PRESENCE.value):
            raise _bad_request("include=member_count needs a prefix that starts with presence-")
        names = [
            name for name in self._hub.channel_names() if name.startswith(prefix) and kind_of(name) is not Kind.MEMBER
        ]
        return {"data": [{"name": name, **self._counts(name, include)} for name in names]}

    def _get_channel(self, name: str, call: Call) -> dict[str, Any]:
        include = self._include([value for key, value in call.query if key == "include"])
        if "member_count" in include and kind_of(name) is not Kind.PRESENCE:
            raise _bad_request("include=member_count needs a presence channel")
        occupied = self._hub.connection_count(name) > 0
        return {"occupied": occupied, **(self._counts(name, include) if occupied else {})}

    def _list_members(self, name: str) -> dict[str, Any]:
        if kind_of(name) is not Kind.PRESENCE:
            raise _bad_request(f"{name} is not a presence channel")
        return {"members": [{"member_id": member_id} for member_id in self._hub.member_ids(name)]}

    def _include(self, values: Iterable[Any]) -> tuple[str, ...]:
        include = tuple(values)
        for value in include:
            if value not in COUNTS:
                raise _bad_request(f"include: {value!r} is none of {', '.join(COUNTS)}")
        if "connection_count" in include and not self._hub.app.connection_counting:
            raise _bad_request("include: connection_count needs the connection_counting flag of the app")
        return include

    def _counts(self, name: str, include: Sequence[str]) -> dict[str, int]:
        counts = {}
        if "member_count" in include and kind_of(name) is Kind.PRESENCE:
            counts["member_count"] = len(self._hub.member_ids(name))
        if "connection_count" in include:
            counts["connection_count"] = self._hub.connection_count(name)
        return counts


def _idempotency_key(call: Call) -> str | None:
    return call.header("idempotency-key") if call.method == "POST" else None


def _equal(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(errors="surrogateescape"), right.encode(errors="surrogateescape"))


def _body(call: Call) -> dict[str, str]:
    try:
        return _fields(call.body.decode(), "body")
    except UnicodeDecodeError:
        raise _invalid("body", "is not UTF-8") from None


def _fields(text: str, where: str) -> dict[str, str]:
    try:
        fields = object_members(text)
    except JSONTextError as error:
        raise _invalid(where, str(error)) from None
    for key, value in fields.items():
        # Those of a batch are looked at one by one.
        if key != "events" and has_half_pair(value):
            raise _invalid(key if where == "body" else f"{where}.{key}", "has half of a surrogate pair")
    return fields


def _text(fields: dict[str, str], key: str, where: str) -> str:
    value = parse(fields.get(key, "null"))
    if not isinstance(value, str) or not value:
        raise _invalid(f"{where}{key}", "must be a non-empty string")
    return value


def _names(fields: dict[str, str], key: str) -> tuple[str, ...]:
    names = parse(fields.get(key, "null"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _invalid(key, "must be an array of strings")
    if not 1 <= len(names) <= PUBLISH_CHANNELS_LIMIT:
        raise _invalid(key, f"a publish names 1 to {PUBLISH_CHANNELS_LIMIT} channels, not {len(names)}")
    return tuple(names)


def _data(fields: dict[str, str], where: str) -> str | None:
    data = fields.get("data")
    if data is not None and len(data.encode()) > DATA_LIMIT_BYTES:
        raise _invalid(f"{where}data", f"is larger than {DATA_LIMIT_BYTES} bytes")
    return data


def _channel(name: str) -> str:
    problem = channel_problem(name)
    if problem is not None:
        raise _bad_request(f"channel {name}: {problem}")
    return name


def _member_id(member_id: str) -> str:
    problem = member_id_problem(member_id)
    if problem is not None:
        raise _bad_request(f"member {member_id}: {problem}")
    return member_id
