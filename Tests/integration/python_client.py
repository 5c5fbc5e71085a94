"""client_script.c on the Python package: the same options, commands and lines, as far as the package has them.

Of completions it knows those of signins. Requests come through authorizer functions that wait for `grant`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from bird_realtime import (
    AuthorizationError,
    BirdRealtime,
    BirdRealtimeError,
    Channel,
    DecryptionFailed,
    Event,
    EventStream,
    Member,
    MemberEvent,
    PresenceChannel,
    StateChange,
    SubscriptionFailed,
    SubscriptionSucceeded,
)
from bird_realtime import _abi as abi
from bird_realtime.bindings import GloballyBindable
from bird_realtime.options import Options

OK: dict[str, Any] = {"status": "BIRD_OK"}
OVER = "the program ends"

_output = threading.Lock()


def say(**line: object) -> None:
    if "record" in line:
        line["at_us"] = time.monotonic_ns() // 1000
    with _output:
        print(json.dumps(line, ensure_ascii=False), flush=True)


def typed(key: str, value: str) -> object:
    """The value of an option as its keyword argument takes it."""
    hint = str(Options.__annotations__.get(key))
    return int(value) if "Number" in hint else value == "1" if "Flag" in hint else value


def error_fields(error: BirdRealtimeError) -> dict[str, Any]:
    return {
        "error": error.status_name,
        "field": error.field,
        "message": error.message,
        "code": error.code or 0,
        "http_status": error.http_status or 0,
        "curl_code": error.curl_code or 0,
        "endpoint": error.endpoint,
        "error_channel": error.channel,
        "retriable": int(error.retriable),
    }


def roster_text(members: Mapping[str, Any]) -> str:
    """As client_script.c prints one."""
    return "".join(f"{member_id}\x1f{info_text(info)}\x1e" for member_id, info in members.items())


def info_text(info: object) -> str:
    return "" if info is None else json.dumps(info)


def members_now(channel: Channel) -> dict[str, int]:
    return {"members_now": len(channel.members)} if isinstance(channel, PresenceChannel) else {}


LEVELS = {"ERROR": "error", "WARNING": "warn", "INFO": "info", "DEBUG": "verbose"}


class LogLines(logging.Handler):
    """Tells the library's entries as client_script.c tells its log records."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.pathname == "libbirdrealtime":
            say(
                record="log",
                level=LEVELS[record.levelname],
                area=record.name.rpartition(".")[2],
                status=vars(record)["status"],
                message=record.getMessage(),
                about=vars(record)["channel"],
                time_ms=round(record.created * 1000),
            )


class Script:
    def __init__(self, settings: Mapping[str, str]) -> None:
        options: dict[str, Any] = {}
        headers: dict[str, str] = {}
        hooks = {
            "authorizer": self.authorize,
            "member_authorizer": self.authorize_member,
            "header_provider": self.provide_headers,
            "may_reconnect": self.may_reconnect,
        }
        for key, value in settings.items():
            if key.startswith("header:"):
                headers[key.removeprefix("header:")] = value
            elif key in hooks:
                options[key] = hooks[key]
            else:
                options[key] = typed(key, value)
        self.running = threading.Event()
        self.running.set()
        self.requests: list[queue.Queue[Any]] = []
        self.is_over = False
        self.bird = BirdRealtime(auto_connect=False, auth_headers=headers, **options)
        self.channels: dict[str, Channel] = {}
        self.bindings: dict[str, Callable[[], object]] = {}
        connection = self.bird.connection
        connection.bind("state_change", lambda change: self.tell_state("state", change))
        connection.bind("connecting_in", lambda change: self.tell_state("connecting_in", change))
        connection.bind("connection_lost", lambda _: say(record="connection_lost"))
        connection.bind("error", lambda error: say(record="error", **error_fields(error)))
        connection.bind("signin_error", lambda error: say(record="signin_error", **error_fields(error)))
        connection.bind("signed_in", self.tell_member)
        for event in ("online", "offline", "away"):
            self.bird.member.watchlist.bind(event, functools.partial(self.tell_watched, "watchlist", event))
        self.bird.bind_global(self.tell_event)
        self.bird.bind("bird:subscription_succeeded", self.tell_success)
        self.bird.bind("bird:subscription_error", self.tell_failure)
        self.bird.bind("bird:decryption_error", self.tell_undecipherable)
        self.bird.bind("bird:member_added", lambda event: self.tell_change("member_added", event))
        self.bird.bind("bird:member_removed", lambda event: self.tell_change("member_removed", event))
        self.bird.bind("bird:connection_count", self.tell_count)

    # What happens

    def tell_state(self, record: str, change: StateChange) -> None:
        say(
            record=record,
            previous=change.previous,
            current=change.current,
            reason=abi.STATUS_NAMES[change.reason],
            reason_text=change.reason_text,
            close_code=change.code or 0,
            attempt=change.attempt,
            delay_ms=-1 if change.delay is None else round(change.delay * 1000),
            connection_id=change.connection_id or "",
            policy=change.policy or "",
        )

    def tell_member(self, member: Member) -> None:
        say(record="signed_in", member_id=member.member_id, member_info=info_text(member.member_info))

    def tell_event(self, event: Event) -> None:
        self.running.wait()
        say(
            record="event",
            channel=event.channel.name,
            event=event.name,
            data=event.text,
            sender=event.sender or "",
        )

    def tell_success(self, event: SubscriptionSucceeded) -> None:
        say(
            record="subscribed",
            channel=event.channel.name,
            is_resubscribe=int(event.is_resubscribe),
            interrupted_ms=round(event.interrupted * 1000),
            member_count=len(event.members),
            my_id=event.my_id or "",
            data=event.text,
            roster=roster_text(event.members),
            **members_now(event.channel),
        )

    def tell_failure(self, event: SubscriptionFailed) -> None:
        say(
            record="subscription_error",
            channel=event.channel.name,
            will_retry=int(event.will_retry),
            data=event.text,
            **members_now(event.channel),
            **error_fields(event.error),
        )

    def tell_change(self, record: str, event: MemberEvent) -> None:
        say(
            record=record,
            channel=event.channel.name,
            member_id=event.member.member_id,
            data=info_text(event.member.member_info),
            **members_now(event.channel),
        )

    def tell_count(self, event: Event) -> None:
        say(record="connection_count", channel=event.channel.name, data=event.text)

    def tell_undecipherable(self, event: DecryptionFailed) -> None:
        say(
            record="decryption_error",
            channel=event.channel.name,
            event=event.name,
            data=event.text,
            **error_fields(event.error),
        )

    # What the library asks

    def authorize(self, channel_name: str, connection_id: str) -> Any:
        return self.ask("channel", channel_name=channel_name, connection_id=connection_id)

    def authorize_member(self, connection_id: str) -> Any:
        return self.ask("member", connection_id=connection_id)

    def provide_headers(self, endpoint: str) -> Any:
        return self.ask("headers", headers_for=endpoint)

    async def may_reconnect(self, attempt: int, cause: BirdRealtimeError) -> Any:
        try:
            return self.ask("reconnect", attempt=attempt, **error_fields(cause))
        except AuthorizationError:
            return False

    def ask(self, asks: str, **question: object) -> Any:
        answers: queue.Queue[Any] = queue.Queue()
        self.requests.append(answers)
        say(record="request", request=len(self.requests) - 1, asks=asks, **question)
        if self.is_over:
            raise AuthorizationError(OVER)
        answer = answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    # Commands

    def grant(self, request: str, auth: str, member_data: str | None = None) -> None:
        answer = {"auth": auth} if member_data is None else {"auth": auth, "member_data": member_data}
        self.requests[int(request)].put(answer)

    def entrust(self, request: str, auth: str, shared_secret: str) -> None:
        self.requests[int(request)].put({"auth": auth, "shared_secret": shared_secret})

    def headers(self, request: str, name: str, value: str) -> None:
        self.requests[int(request)].put({name: value})

    def proceed(self, request: str, delay_ms: str) -> None:
        self.requests[int(request)].put(int(delay_ms) / 1000)

    def refuse(self, request: str, retriable: str, message: str) -> None:
        self.requests[int(request)].put(AuthorizationError(message, retriable=retriable != "0"))

    def connect(self) -> None:
        self.bird.connect()

    def network(self, hint: str) -> None:
        self.bird.network_hint({"1": "up", "2": "down", "3": "resumed"}[hint])

    def disconnect(self) -> None:
        self.bird.disconnect()

    def retry_now(self) -> None:
        self.bird.retry_now()

    def configure(self, key: str, value: str) -> None:
        options: Any = {key: typed(key, value)}
        self.bird.configure(**options)

    def close(self, timeout_ms: str) -> None:
        self.bird.close(int(timeout_ms) / 1000)

    def storm(self, threads: str) -> None:
        callers = [threading.Thread(target=self.bird.connect) for _ in range(int(threads))]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()

    def subscribe(self, name: str, _tag: str) -> None:
        self.channels[name] = self.bird.subscribe(name)

    def unsubscribe(self, name: str) -> None:
        self.channels[name].unsubscribe()

    def trigger(self, name: str, event: str, data: str | None = None) -> dict[str, Any] | None:
        is_on_its_way = self.channels[name].trigger(event, **({} if data is None else {"raw": data.encode()}))
        return None if is_on_its_way else {"status": "BIRD_ERR_NOT_SUBSCRIBED"}

    def signin(self, tag: str, flags: str) -> None:
        threading.Thread(target=self.wait_for_signin, args=(int(tag), flags != "0"), daemon=True).start()

    def wait_for_signin(self, tag: int, refresh: bool) -> None:
        try:
            member = self.bird.signin(refresh=refresh)
        except BirdRealtimeError as failure:
            say(record="completion", tag=tag, operation="signin", status=failure.status_name, **error_fields(failure))
        else:
            say(record="completion", tag=tag, operation="signin", status="BIRD_OK", member_id=member.member_id)

    def watch(self) -> None:
        for event in ("online", "offline", "away"):
            self.bird.member.watchlist.bind(event, functools.partial(self.tell_watched, "watched", event))

    def tell_watched(self, record: str, event: str, ids: list[str]) -> None:
        say(record=record, event=event, data=json.dumps(ids, separators=(",", ":")))

    def end(self) -> None:
        """Nothing holds up the end of the client: no handler that was paused, no question without an answer."""
        self.is_over = True
        for answers in self.requests:
            answers.put(AuthorizationError(OVER))
        self.running.set()

    def pause(self) -> None:
        self.running.clear()

    def resume(self) -> None:
        self.running.set()

    def state(self) -> dict[str, Any]:
        return {"state": self.bird.connection.state}

    def member(self) -> dict[str, Any]:
        return {"member_id": self.bird.member_id or ""}

    def roster(self, name: str) -> dict[str, Any]:
        channel = self.channels[name]
        assert isinstance(channel, PresenceChannel)
        members = channel.members
        return {"members": " ".join(members), "my_id": channel.my_id or "", "roster": roster_text(members)}

    def bind(self, number: str, name: str, event: str | None = None) -> None:
        def bound(happened: Event) -> None:
            fields = {"roster": roster_text(happened.members)} if isinstance(happened, SubscriptionSucceeded) else {}
            say(record="bound", binding=int(number), event=happened.name, data=happened.text, **fields)

        bindable: GloballyBindable = self.bird if name == "*" else self.channels[name]
        if event is None:
            bindable.bind_global(bound)
            self.bindings[number] = lambda: bindable.unbind_global(bound)
        else:
            bindable.bind(event, bound)
            self.bindings[number] = lambda: bindable.unbind(event, bound)

    def unbind(self, number: str) -> None:
        self.bindings.pop(number)()

    def unbind_event(self, name: str, event: str) -> None:
        self.channels[name].unbind(event)

    def unbind_all(self, name: str) -> None:
        self.channels[name].unbind()

    def iterate(self, name: str, count: str) -> None:
        source = self.bird if name == "*" else self.channels[name]
        events = source.events()  # holds what comes before the thread is there
        threading.Thread(target=self.take, args=(events, int(count)), daemon=True).start()

    def take(self, events: EventStream, count: int) -> None:
        try:
            for event in itertools.islice(events, count):
                say(record="iterated", channel=event.channel.name, event=event.name, data=event.text)
            say(record="iteration_over")
        except BirdRealtimeError as error:
            say(record="iteration_over", **error_fields(error))

    def fork(self) -> dict[str, Any]:
        child = os.fork()
        if child == 0:
            status = "BIRD_OK"
            try:
                self.bird.connection.state  # noqa: B018
            except BirdRealtimeError as error:
                status = error.status_name
            os._exit(-getattr(abi, status))
        _, ended = os.waitpid(child, 0)
        return {"in_child": abi.STATUS_NAMES[-os.waitstatus_to_exitcode(ended)]}

    def statistics(self) -> dict[str, Any]:
        return self.bird.statistics()._asdict()

    def dump(self) -> dict[str, Any]:
        return {"dump": json.dumps(self.bird.dump())}


def arguments_of(function: Callable[..., Any], text: str) -> list[str]:
    """The blank-separated arguments; the last one keeps its blanks."""
    return text.split(" ", len(inspect.signature(function).parameters) - 1) if text else []


def main() -> None:
    logging.basicConfig(level=logging.DEBUG, handlers=[LogLines()])
    try:
        script = Script(dict(setting.split("=", 1) for setting in sys.argv[1:]))
    except BirdRealtimeError as error:
        say(reply="create", status=error.status_name, **error_fields(error))
        return
    say(reply="create", **OK)
    with script.bird:
        for line in sys.stdin:
            command, _, rest = line.rstrip("\n").partition(" ")
            method = getattr(script, command)
            try:
                fields = method(*arguments_of(method, rest)) or {}
                say(reply=command, **{**OK, **fields})
            except BirdRealtimeError as error:
                say(reply=command, status=error.status_name, **error_fields(error))
        script.end()


if __name__ == "__main__":
    main()
