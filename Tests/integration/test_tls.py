"""wss with certificates of a private authority, made here with openssl."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import StartClient
from scripted_server import ScriptedServer, event, text

pytestmark = pytest.mark.c_only("the way to a connection is the engine's, below both faces")


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S607


@dataclass(frozen=True)
class Authority:
    """A certificate authority that issues server certificates."""

    directory: Path
    name: str

    @property
    def certificate(self) -> Path:
        return self.directory / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        return self.directory / f"{self.name}.key"

    def create(self) -> Authority:
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
            *("-subj", f"/CN={self.name}", "-keyout", self.key, "-out", self.certificate),
        )
        return self

    def server_context(self, names: str) -> ssl.SSLContext:
        """For a server with these subject alternative names."""
        key, request, certificate = (self.directory / f"{self.name}-server{end}" for end in (".key", ".csr", ".pem"))
        extensions = self.directory / "extensions"
        extensions.write_text(f"subjectAltName={names}\n")
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server"),
            *("-keyout", key, "-out", request),
        )
        openssl(
            *("x509", "-req", "-in", request, "-days", "2", "-CAcreateserial", "-extfile", extensions),
            *("-CA", self.certificate, "-CAkey", self.key, "-out", certificate),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "right").create()


def tls_bytes_read(server: ScriptedServer, context: ssl.SSLContext) -> bytes:
    """What the client sent inside the TLS session, if there was one."""
    connection = server.accept()
    try:
        with context.wrap_socket(connection.socket, server_side=True) as session:
            return session.recv(65536)
    except (ssl.SSLError, ConnectionError):
        return b""


@pytest.mark.parametrize("names", ["DNS:localhost", "DNS:*.example.test,DNS:localhost"])
def test_own_authority_is_trusted(connect: StartClient, authority: Authority, names: str) -> None:
    with ScriptedServer(authority.server_context(names)) as server:
        client = connect(
            server, ws_host=f"localhost:{server.port}", allow_insecure=0, ca_file=str(authority.certificate)
        )
        client.do("subscribe", "orders", 0)
        connection = server.accept()
        connection.establish()
        connection.join("orders")
        client.wait_for("subscribed")
        # More than one TLS record, and more than what one read takes.
        connection.send(b"".join(text(event("tick", "orders", {"n": n, "pad": "x" * 1000})) for n in range(3000)))
        for _ in range(3000):
            client.wait_for("event")


def test_address_is_verified_too(connect: StartClient, authority: Authority) -> None:
    with ScriptedServer(authority.server_context("IP:127.0.0.1")) as server:
        client = connect(server, allow_insecure=0, ca_file=str(authority.certificate))
        server.accept().establish()
        client.wait_for_state("connected")


@pytest.mark.parametrize("wrong", ["authority", "name", "address", "system's authorities"])
def test_wrong_certificate_is_refused_before_a_byte(
    connect: StartClient, authority: Authority, tmp_path: Path, wrong: str
) -> None:
    names = {"name": "DNS:example.test", "address": "IP:127.0.0.2"}.get(wrong, "DNS:localhost")
    context = authority.server_context(names)
    trusted = {"ca_file": str(authority.certificate)}
    if wrong == "authority":
        trusted = {"ca_file": str(Authority(tmp_path, "wrong").create().certificate)}
    elif wrong == "system's authorities":
        trusted = {}
    with ScriptedServer() as server:
        host = "127.0.0.1" if wrong == "address" else "localhost"
        client = connect(server, ws_host=f"{host}:{server.port}", allow_insecure=0, **trusted)
        assert tls_bytes_read(server, context) == b""
        error = client.wait_for("error")
        assert error["error"] == "BIRD_ERR_TLS"
        assert error["curl_code"] == 60
        assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_TLS"


def test_ca_file_that_is_not_there(connect: StartClient, tmp_path: Path) -> None:
    with ScriptedServer() as server:
        client = connect(
            server, ws_host=f"localhost:{server.port}", allow_insecure=0, ca_file=str(tmp_path / "missing.pem")
        )
        error = client.wait_for("error")
        assert error["error"] == "BIRD_ERR_TLS"
        assert "missing.pem" in error["message"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_plaintext_needs_the_flag(connect: StartClient, host: str) -> None:
    with ScriptedServer() as server:
        connect(server, ws_host=f"{host}:{server.port}", allow_insecure=0)
        assert server.accept().read_byte() == 0x16  # a TLS hello


def test_tls_to_a_plaintext_server(connect: StartClient) -> None:
    with ScriptedServer() as server:
        client = connect(server, ws_host=f"localhost:{server.port}", allow_insecure=0)
        server.accept().send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert client.wait_for("error")["error"] == "BIRD_ERR_TLS"
