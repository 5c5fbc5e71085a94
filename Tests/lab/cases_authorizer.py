"""An authorizer that does not do what it should, be it an endpoint or a function of the program's."""

from __future__ import annotations

import gzip
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Any

from auth_endpoint import GRANTED, SIGNATURE, AuthEndpoint, PrivateEdge, answers, grants
from case import Case
from certificates import Authority
from lab_edge import Fault
from scale import reserved_ports
from scripted_server import Connection, ScriptedServer
from trial import Trial

TITLE = "The authorizer"

TRANSIENT = ("subscription_error BIRD_ERR_AUTH auth_endpoint will retry",)
UNANSWERED = ("subscription_error BIRD_ERR_AUTH auth_timeout_ms will retry",)
FINAL = ("subscription_error BIRD_ERR_AUTH auth_endpoint final",)
DENIED = ("subscription_error BIRD_ERR_DENIED auth_endpoint final",)

AT_ONCE_S = (0.0, 0.1)
ONE_RETRY_S = (0.0, 1.0)  # a draw from 0 to 1 s
THREE_RETRIES_S = (0.0, 7.0)  # draws from 0 to 1, 2 and 4 s
FOURTH_RETRY_S = (0.0, 8.0)  # one more
TIMEOUT_S = 10.0
FOUR_TIMEOUTS_S = (4 * TIMEOUT_S, 4 * TIMEOUT_S + 7.0)


# ------------------------------------------------------------------------------------------------------ endpoints ----


def begin(trial: Trial, **options: Any) -> None:
    """A client of an edge that admits to its channel only whom the authorizer has granted it."""
    trial.start(trial.stack.enter_context(PrivateEdge(trial.fault)), **options)


def endpoint(trial: Trial, *faults: Fault, **further: Any) -> AuthEndpoint:
    """One that breaks with the first request, after the program has heard that it is connected."""

    def breaks() -> None:
        trial.wait_until(lambda: bool(trial.client.all("state", current="connected")), "connection")
        trial.fault()

    server = ScriptedServer()
    return trial.stack.enter_context(AuthEndpoint(server, breaks, faults, **further))


def meets(*faults: Fault) -> Callable[[Trial], None]:
    """So many requests do."""

    def run(trial: Trial) -> None:
        begin(trial, auth_endpoint=endpoint(trial, *faults).url)

    return run


def heals_when_told(fault: Fault) -> Callable[[Trial], None]:
    """Every request does until the program has heard of it."""

    def run(trial: Trial) -> None:
        broken = endpoint(trial, lasting=fault)
        begin(trial, auth_endpoint=broken.url)
        trial.wait_until_told()
        broken.heal()
        trial.heal()

    return run


def is_asked_again(fault: Fault) -> Callable[[Trial], None]:
    """The first request does; when the program has heard that this is final it subscribes again."""

    def run(trial: Trial) -> None:
        meets(fault)(trial)
        subscribe_again(trial)

    return run


def subscribe_again(trial: Trial) -> None:
    trial.wait_until(lambda: bool(trial.client.all("subscription_error")), "refusal")
    trial.heal()
    trial.client.do("subscribe", trial.edge.channel, 0)


def is_slow(connection: Connection) -> None:
    connection.read_post()
    time.sleep(3)
    connection.respond(200, GRANTED)


def hangs(connection: Connection) -> None:
    connection.read_post()
    connection.expect_end()


def resets(connection: Connection) -> None:
    connection.read_post()
    connection.reset()


def cuts(connection: Connection) -> None:
    connection.read_post()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + GRANTED)
    connection.close()


def sends_bytes(connection: Connection) -> None:
    connection.read_post()
    connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for byte in GRANTED:
        connection.send(b"1\r\n" + bytes([byte]) + b"\r\n")
        time.sleep(0.01)
    connection.send(b"0\r\n\r\n")
    connection.close()


def wants_a_date(connection: Connection) -> None:
    """In little more than 2 s, or in 3: dates have whole seconds."""
    answers(429, Retry_After=formatdate(time.time() + 3, usegmt=True))(connection)


def redirects(status: int) -> Callable[[Trial], None]:
    """To a server that would grant, and must not see the headers."""

    def run(trial: Trial) -> None:
        other = trial.stack.enter_context(ScriptedServer())
        fault = answers(status, Location=f"http://{other.host}/bird/auth")
        begin(trial, auth_endpoint=endpoint(trial, fault).url, header__Authorization="Bearer hush")
        subscribe_again(trial)
        assert other.is_left_alone_for(0.2), "the redirect was followed"

    return run


def refuses_connections(trial: Trial) -> None:
    [port] = trial.stack.enter_context(reserved_ports(1))
    begin(trial, auth_endpoint=f"http://127.0.0.1:{port}/bird/auth")
    trial.fault(trial.client.wait_for_state("connected")["at_s"])
    trial.wait_until_told()
    trial.stack.enter_context(AuthEndpoint(ScriptedServer(port=port), trial.fault))
    trial.heal()


def has_another_name(trial: Trial) -> None:
    authority = Authority(trial.directory / "ca")
    wrong, right = (authority.issue(name, f"DNS:{name}").server_context() for name in ("other.example", "localhost"))

    def shows_the_wrong_one(connection: Connection) -> None:
        with suppress(ssl.SSLError):
            connection.start_tls(wrong)
        connection.close()

    def grants_secretly(connection: Connection) -> None:
        connection.start_tls(right)
        grants(connection)

    broken = endpoint(trial, *[shows_the_wrong_one] * 4, serves=grants_secretly)
    begin(trial, auth_endpoint=f"https://localhost:{broken.port}/bird/auth", ca_file=str(authority.file))
    trial.wait_until_told()
    trial.heal()


# ------------------------------------------------------------------------------------------------------ functions ----


def asked(trial: Trial) -> int:
    return int(trial.client.wait_for("request", asks="channel")["request"])


def grant(trial: Trial, request: int) -> str:
    return str(trial.client.call("grant", request, SIGNATURE)["status"])


def never_answers(trial: Trial) -> None:
    begin(trial, authorizer=1)
    asked(trial)
    trial.fault()
    trial.wait_until_told()
    trial.heal()
    questions = len(trial.client.all("request"))
    trial.wait_until(lambda: len(trial.client.all("request")) > questions, "another question")
    assert grant(trial, trial.client.all("request")[-1]["request"]) == "BIRD_OK"


def answers_twice(trial: Trial) -> None:
    begin(trial, authorizer=1)
    request = asked(trial)
    trial.fault()
    assert grant(trial, request) == "BIRD_OK"
    assert grant(trial, request) == "BIRD_ERR_ANSWERED"


def answers_late(trial: Trial) -> None:
    begin(trial, authorizer=1)
    late = asked(trial)
    trial.fault()
    again = asked(trial)
    assert grant(trial, late) == "BIRD_ERR_ANSWERED"
    assert grant(trial, again) == "BIRD_OK"


LATER = "the program subscribes again"
TWELVE_MB = b" " * 12_000_000
WRONG = b'{"auth":"pk_lab:another signature"}'


def case(
    name: str,
    what: str,
    run: Callable[[Trial], None],
    told: tuple[str, ...] = (),
    told_s: tuple[float, float] | None = None,
    back_s: tuple[float, float] = AT_ONCE_S,
    **options: str | int,
) -> Case:
    return Case(f"auth-{name}", what, run, told, told_s, back_s, options)


def once(name: str, what: str, fault: Fault, back_s: tuple[float, float] = ONE_RETRY_S) -> Case:
    """Nothing is told of what one more request mends."""
    return case(name, f"one request: {what}", meets(fault), back_s=back_s)


def lasting(name: str, what: str, fault: Fault, told: tuple[str, ...] = TRANSIENT) -> Case:
    what = f"{what}, until the program hears of it"
    return case(name, what, heals_when_told(fault), told, THREE_RETRIES_S, FOURTH_RETRY_S)


def final(name: str, what: str, fault: Fault, told: tuple[str, ...] = FINAL) -> Case:
    return case(name, f"{what}; {LATER}", is_asked_again(fault), told, AT_ONCE_S)


CASES = [
    once("slow", "it is answered after 3 s", is_slow, (3.0, 3.1)),
    once("bytes", "it is answered in chunks of one byte, 10 ms apart", sends_bytes, (0.2, 0.5)),
    once("hangs-once", "no answer", hangs, (TIMEOUT_S, TIMEOUT_S + 1)),
    case(
        "hangs",
        "no request is answered, until the program hears of it",
        heals_when_told(hangs),
        UNANSWERED,
        FOUR_TIMEOUTS_S,
        FOURTH_RETRY_S,
    ),
    case(
        "refuses-connections",
        "nothing listens there, until the program hears of it",
        refuses_connections,
        ("subscription_error BIRD_ERR_AUTH connect will retry",),
        THREE_RETRIES_S,
        FOURTH_RETRY_S,
    ),
    once("rst", "RST", resets),
    lasting("cut", "the answer is cut off", cuts, ("subscription_error BIRD_ERR_AUTH connect will retry",)),
    once("429-seconds", "429 with Retry-After: 2", answers(429, Retry_After="2"), (2.0, 3.0)),
    once("429-date", "429 with a Retry-After that is a date, in 2 to 3 s", wants_a_date, (2.0, 4.0)),
    once("429-hour", "429 with Retry-After: 3600, of which 60 s count", answers(429, Retry_After="3600"), (60.0, 61.0)),
    once("503-once", "503", answers(503)),
    lasting("503", "503", answers(503)),
    lasting("500", "500 with HTML", answers(500, b"<h1>sorry</h1>", Content_Type="text/html")),
    final("403", "403", answers(403, b"no"), DENIED),
    *(
        case(
            f"{status}",
            f"{status} to a server that would grant, which is not asked; {LATER}",
            redirects(status),
            FINAL,
            AT_ONCE_S,
        )
        for status in (301, 302, 307)
    ),
    final("html", "200 with HTML", answers(200, b"<!doctype html><title>Sign in</title>", Content_Type="text/html")),
    final("shape", "200 with JSON of another shape", answers(200, b'{"token":{"auth":"a"}}')),
    final("huge", "200 with 12 MB", answers(200, TWELVE_MB)),
    final("gzip", "200 with a compressed answer", answers(200, gzip.compress(GRANTED), Content_Encoding="gzip")),
    case(
        "wrong-signature",
        f"a signature that the edge refuses; {LATER}",
        is_asked_again(answers(200, WRONG)),
        ("error BIRD_ERR_SERVER", "subscription_error BIRD_ERR_DENIED final"),
        AT_ONCE_S,
    ),
    case(
        "wrong-name",
        "its certificate is for another name, until the program hears of it",
        has_another_name,
        ("subscription_error BIRD_ERR_AUTH tls will retry",),
        THREE_RETRIES_S,
        FOURTH_RETRY_S,
    ),
    case(
        "function-silent",
        "the program never answers, until it hears of it",
        never_answers,
        UNANSWERED,
        FOUR_TIMEOUTS_S,
        (0.0, 8.0),
    ),
    case("function-twice", "the program answers twice: the second call gives `BIRD_ERR_ANSWERED`", answers_twice),
    case(
        "function-late",
        "the program answers after the deadline, with `BIRD_ERR_ANSWERED`, and the next question in time",
        answers_late,
        back_s=(1.0, 2.0),
        auth_timeout_ms=1000,
    ),
]
