"""What goes wrong in TLS: in the handshake, with the certificate, and behind it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from case import Case
from certificates import Authority
from lab_edge import Fault
from scripted_server import Connection, ScriptedServer
from trial import Trial

TITLE = "TLS"

AT_ONCE_S = (0.0, 0.1)
FIRST_WAIT_S = (0.0, 1.0)
DEADLINE_S = (15.0, 15.1)

BAD = ("error BIRD_ERR_TLS tls", "unavailable BIRD_ERR_TLS", "connected")
SILENT = ("error BIRD_ERR_TIMEOUT tls", "unavailable BIRD_ERR_TIMEOUT", "connected")
LOST_EARLY = ("error BIRD_ERR_LOST connection", "unavailable BIRD_ERR_LOST", "connected")
LOST = ("unavailable BIRD_ERR_LOST", "connected")

HELLO_BYTES_MAX = 16 * 1024
LOCAL = "IP:127.0.0.1"


# With what certificates there are to be for it, made before.
Prepared = Callable[[Authority], Fault]


def secured(prepare: Prepared | None, order: Fault | None = None) -> Callable[[Trial], None]:
    """The first attempt meets the fault; or the connection that works, the order."""

    def run(trial: Trial) -> None:
        authority = Authority(trial.directory / "ca")
        faults = [] if prepare is None else [prepare(authority)]
        edge = trial.edge_on(ScriptedServer(), authority.server_context(LOCAL), *faults)
        trial.start(edge, ca_file=str(authority.file))
        if order is not None:
            trial.wait_for_service()
            trial.order(order)

    return run


def behind_hello(end: Fault) -> Prepared:
    def fault(connection: Connection) -> None:
        connection.socket.recv(HELLO_BYTES_MAX)
        end(connection)

    return lambda _: fault


def in_server_hello(end: Fault) -> Prepared:
    """Behind a part of the server's first flight."""

    def fault(context: ssl.SSLContext, connection: Connection) -> None:
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        side = context.wrap_bio(received, sent, server_side=True)
        received.write(connection.socket.recv(HELLO_BYTES_MAX))
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            connection.send(sent.read()[:200])
        end(connection)

    return lambda authority: partial(fault, authority.server_context(LOCAL))


def with_tls(act: Fault) -> Prepared:
    """The handshake succeeds."""

    def fault(context: ssl.SSLContext, connection: Connection) -> None:
        connection.start_tls(context)
        act(connection)

    return lambda authority: partial(fault, authority.server_context(LOCAL))


def after_request(end: Fault) -> Fault:
    def fault(connection: Connection) -> None:
        connection.read_request()
        end(connection)

    return fault


def alert(number: int) -> Prepared:
    """A fatal alert in place of the server's hello (RFC 8446 §6)."""

    def end(connection: Connection) -> None:
        connection.send(bytes([21, 3, 3, 0, 2, 2, number]))
        connection.close()

    return behind_hello(end)


def bad_certificate(names: str, day: int) -> Prepared:
    """For these names, valid around this day from now."""

    def prepare(authority: Authority) -> Fault:
        times = {"valid_from": timedelta(days=day - 1), "valid_until": timedelta(days=day, hours=12)}
        context = authority.issue("bad", names, **times).server_context()
        return lambda connection: connection.start_tls(context)

    return prepare


def nothing(connection: Connection) -> None:
    """The connection stays as it is."""


RST, FIN = Connection.reset, Connection.close


def told(name: str, what: str, fault: Prepared, words: tuple[str, ...] = BAD) -> Case:
    return Case(name, what, secured(fault), words, AT_ONCE_S, FIRST_WAIT_S)


CASES = [
    told("tls-hello-rst", "RST behind the client's hello", behind_hello(RST)),
    told("tls-hello-fin", "FIN behind the client's hello", behind_hello(FIN)),
    told("tls-part-rst", "RST within the server's first flight", in_server_hello(RST)),
    told("tls-part-fin", "FIN within the server's first flight", in_server_hello(FIN)),
    told("tls-request-rst", "RST behind the upgrade request", with_tls(after_request(RST)), LOST_EARLY),
    told("tls-request-fin", "FIN behind the upgrade request", with_tls(after_request(FIN)), LOST_EARLY),
    Case(
        "tls-silent",
        "accepts and never answers the client's hello",
        secured(behind_hello(nothing)),
        SILENT,
        DEADLINE_S,
        (15.0, 16.1),
    ),
    told("alert-40", "alert handshake_failure", alert(40)),
    told("alert-49", "alert access_denied", alert(49)),
    told("alert-70", "alert protocol_version", alert(70)),
    told("alert-80", "alert internal_error", alert(80)),
    told("alert-112", "alert unrecognized_name", alert(112)),
    told("certificate-expired", "the certificate has expired", bad_certificate(LOCAL, -2)),
    told("certificate-future", "the certificate is not valid yet", bad_certificate(LOCAL, 2)),
    told("certificate-name", "the certificate is for another name", bad_certificate("DNS:other.test", 0)),
    Case("tls-rst", "RST between two events", secured(None, RST), LOST, AT_ONCE_S, FIRST_WAIT_S),
    Case("tls-fin", "FIN without TLS's own end", secured(None, FIN), LOST, AT_ONCE_S, FIRST_WAIT_S),
]
