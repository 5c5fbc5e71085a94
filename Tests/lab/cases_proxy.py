"""Proxies that refuse, drop, and hang; the edge behind them speaks TLS."""

from __future__ import annotations

from collections.abc import Callable

from case import Case
from certificates import Authority
from lab_edge import Fault, LabEdge
from lab_proxy import ESTABLISHED, LabProxy
from proxies import SocksProxy
from scale import reserved_ports
from scripted_server import Connection, ScriptedServer
from trial import Trial

TITLE = "Proxies"

FIRST_WAIT_S = (0.0, 1.0)
AT_ONCE_S = (0.0, 0.1)
CONNECT_TIMEOUT_S = 15.0
ACTIVITY_S = 1
PONG_TIMEOUT_S = 30.0

BROKEN = ("error BIRD_ERR_PROXY proxy", "unavailable BIRD_ERR_PROXY", "connected")
TIMEOUT = ("error BIRD_ERR_TIMEOUT proxy", "unavailable BIRD_ERR_TIMEOUT", "connected")
LOST = ("unavailable BIRD_ERR_LOST", "connected")

SOCKS_REPLIES = {
    1: "a failure of its own",
    2: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


def edge(trial: Trial) -> tuple[LabEdge, Authority]:
    authority = Authority(trial.directory / "ca")
    context = authority.server_context("DNS:localhost")
    behind = LabEdge(ScriptedServer(), context, activity_timeout_s=ACTIVITY_S, on_fault=trial.fault)
    return trial.stack.enter_context(behind), authority


def begin(trial: Trial, *faults: Fault) -> LabProxy:
    behind, authority = edge(trial)
    proxy = trial.stack.enter_context(LabProxy(behind.port, trial.fault, faults))
    trial.start(behind, f"localhost:{behind.port}", proxy=f"http://{proxy.host}", ca_file=str(authority.file))
    return proxy


def meets(fault: Fault) -> Callable[[Trial], None]:
    """The first attempt does."""

    def run(trial: Trial) -> None:
        begin(trial, fault)

    return run


def answers(response: bytes) -> Fault:
    def fault(connection: Connection) -> None:
        connection.send(response)
        connection.close()

    return fault


def hangs(connection: Connection) -> None:
    connection.expect_end()


def refuses_connections(trial: Trial) -> None:
    behind, authority = edge(trial)
    [port] = trial.stack.enter_context(reserved_ports(1))
    trial.fault()
    trial.start(behind, f"localhost:{behind.port}", proxy=f"http://127.0.0.1:{port}", ca_file=str(authority.file))
    trial.wait_until_told()
    trial.stack.enter_context(LabProxy(behind.port, trial.fault, port=port))
    trial.heal()


def resets_a_tunnel(trial: Trial) -> None:
    proxy = begin(trial)
    trial.wait_for_service()
    trial.fault()
    proxy.reset_tunnels()


def swallows_a_tunnel(trial: Trial) -> None:
    proxy = begin(trial)
    trial.wait_for_service()
    proxy.swallow_tunnels()
    trial.fault()


def replies(reply: int) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        behind, authority = edge(trial)
        proxy = trial.stack.enter_context(SocksProxy(reply))
        trial.fault()
        trial.start(behind, f"localhost:{behind.port}", proxy=f"socks5h://{proxy.host}", ca_file=str(authority.file))
        trial.wait_until_told()
        proxy.reply = 0
        trial.heal()

    return run


def case(
    name: str,
    what: str,
    run: Callable[[Trial], None],
    told: tuple[str, ...] = BROKEN,
    told_s: tuple[float, float] = AT_ONCE_S,
    back_s: tuple[float, float] = FIRST_WAIT_S,
) -> Case:
    return Case(f"proxy-{name}", what, run, told, told_s, back_s)


HTML = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<h1>sorry</h1>"
WANTS_CREDENTIALS = b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n'
AFTER_TIMEOUT_S = (CONNECT_TIMEOUT_S, CONNECT_TIMEOUT_S + 1)

CASES = [
    case("refuses-connections", "nothing listens there, until the program hears of it", refuses_connections),
    case("closes", "it ends the connection without an answer", meets(Connection.close)),
    case("502", "502 with HTML", meets(answers(HTML))),
    case("407", "it wants credentials", meets(answers(WANTS_CREDENTIALS))),
    case(
        "drops-after-connect",
        "it ends the connection behind its 200",
        meets(answers(ESTABLISHED)),
        ("error BIRD_ERR_TLS tls", "unavailable BIRD_ERR_TLS", "connected"),
    ),
    case(
        "hangs",
        "it does not answer",
        meets(hangs),
        TIMEOUT,
        (CONNECT_TIMEOUT_S, CONNECT_TIMEOUT_S + 0.1),
        AFTER_TIMEOUT_S,
    ),
    case("resets-a-tunnel", "RST to both ends of the tunnel, while events come", resets_a_tunnel, LOST),
    case(
        "black-hole",
        f"whatever enters the tunnel is lost, while events come; the edge wants a ping after {ACTIVITY_S} s",
        swallows_a_tunnel,
        ("unavailable BIRD_ERR_TIMEOUT", "connected"),
        (ACTIVITY_S + PONG_TIMEOUT_S, ACTIVITY_S + PONG_TIMEOUT_S + 0.1),
        (ACTIVITY_S + PONG_TIMEOUT_S, ACTIVITY_S + PONG_TIMEOUT_S + 1),
    ),
    *(
        case(f"socks-{reply}", f"SOCKS5 reply {reply}, {words}, until the program hears of it", replies(reply))
        for reply, words in SOCKS_REPLIES.items()
    ),
]
