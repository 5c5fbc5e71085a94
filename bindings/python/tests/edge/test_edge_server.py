"""Starting, stopping and reaching an edge from a test."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from raw_client import TIMEOUT_S, RawClient

from bird_realtime.testing import App, ConfigError, EdgeConfig, EdgeServer

StartEdge = Callable[[EdgeConfig], EdgeServer]


def test_addresses(edge: EdgeServer) -> None:
    assert edge.port > 0
    assert edge.ws_host == f"127.0.0.1:{edge.port}"
    assert edge.ws_url == f"ws://127.0.0.1:{edge.port}/app/pk_local?protocol=7"
    assert edge.base_url == f"http://127.0.0.1:{edge.port}"
    assert edge.auth_endpoint == f"http://127.0.0.1:{edge.port}/bird/auth"
    assert edge.member_auth_endpoint == f"http://127.0.0.1:{edge.port}/bird/auth/member"


def test_ipv6(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(host="::1"))
    assert edge.ws_host == f"[::1]:{edge.port}"
    with RawClient.greeted(edge):
        pass


def test_an_outage_on_the_same_port(edge: EdgeServer) -> None:
    port = edge.port
    with RawClient.greeted(edge) as client:
        edge.stop()
        assert client.receive_close() == (1001, "edge stops")
    with pytest.raises(ConnectionRefusedError):
        RawClient(edge)
    with pytest.raises(RuntimeError, match="does not run"):
        edge.connections()
    edge.start()
    assert edge.port == port
    with RawClient.greeted(edge):
        assert len(edge.connections()) == 1
    with pytest.raises(RuntimeError, match="runs already"):
        edge.start()


def test_a_client_that_does_not_answer_cannot_hold_up_the_end(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig())
    with RawClient.greeted(edge) as client:
        edge.inject_raw(b"\x81\x7e\xff\xff", client.connection_id)  # a message that never ends
        edge.stop()
        assert client.receive_close()[0] == 1006


def test_a_taken_port_is_an_error(edge: EdgeServer) -> None:
    with pytest.raises(OSError, match="address already in use"):
        EdgeServer(EdgeConfig(port=edge.port)).start()


def test_no_thread_stays() -> None:
    before = set(threading.enumerate())  # those of other tests, which may be ending
    with EdgeServer() as edge, RawClient.greeted(edge):
        started = set(threading.enumerate()) - before
        assert started
    for thread in started | (set(threading.enumerate()) - before):
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), thread


@pytest.mark.parametrize(
    ("option", "make"),
    [
        ("app_id", lambda: App(app_id="rap_short")),
        ("connection_count_events", lambda: App(connection_count_events=True)),
        ("status", lambda: App(status="gone")),
        ("connection_quota", lambda: App(connection_quota=-1)),
        ("port", lambda: EdgeConfig(port=65_536)),
        ("app_key", lambda: EdgeConfig(app_key="a:b")),
        ("app_secret", lambda: EdgeConfig(app_secret="")),
        ("api_key", lambda: EdgeConfig(api_key="")),
        ("member", lambda: EdgeConfig(members={"a b": None})),
        ("encryption_master_key", lambda: EdgeConfig(encryption_master_key=b"short")),
        ("tls_key", lambda: EdgeConfig(tls_key="key.pem")),
        ("activity_timeout_s", lambda: EdgeConfig(activity_timeout_s=0)),
        ("ping_after_s", lambda: EdgeConfig(ping_after_s=0)),
        ("presence_limit_members", lambda: EdgeConfig(presence_limit_members=-1)),
        ("client_events_per_s", lambda: EdgeConfig(client_events_per_s=0)),
    ],
)
def test_bad_options_are_named(option: str, make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError) as refused:
        make()
    assert refused.value.option == option


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def test_tls(start_edge: StartEdge, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    edge = start_edge(EdgeConfig(tls_cert=str(cert), tls_key=str(key)))
    assert edge.ws_url.startswith("wss://")
    assert edge.base_url.startswith("https://")
    context = ssl.create_default_context(cafile=str(cert))
    with RawClient(edge, ssl=context) as client:
        client.connection_id = client.receive_handshake()["connection_id"]
        assert client.subscribe("private-a")["event"] == "bird_internal:subscription_succeeded"
        edge.drop_connections()
        assert client.receive_close() == (1006, "")
    with RawClient(edge, ssl=context) as client:
        client.receive_handshake()
        edge.close_connections(4009, "bye")
        assert client.receive_close() == (4009, "bye")


def test_a_missing_certificate_is_named(certificate: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match=r"tls_cert: cannot load /nowhere\.pem"):
        EdgeServer(EdgeConfig(tls_cert="/nowhere.pem")).start()
    with pytest.raises(ConfigError, match="tls_cert"):
        EdgeServer(EdgeConfig(tls_cert=str(certificate[0]))).start()
