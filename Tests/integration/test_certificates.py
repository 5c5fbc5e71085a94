"""Certificates that OpenSSL does not accept, each for a reason of its own, and what the program is told."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import openssl
from conftest import StartClient
from scripted_server import ScriptedServer

pytestmark = pytest.mark.c_only("the way to a connection is the engine's, below both faces")

NAMES = "subjectAltName=DNS:localhost\n"
CA = "basicConstraints=critical,CA:true\nkeyUsage=keyCertSign\n"


class Certificate:
    """Signed by `issuer`, or by itself; `days` negative: it has expired."""

    def __init__(
        self,
        directory: Path,
        name: str,
        issuer: Certificate | None,
        extensions: str,
        *,
        rsa_bits: int = 2048,
        digest: str = "sha256",
        days: int = 2,
    ) -> None:
        self.file, self.key = directory / f"{name}.pem", directory / f"{name}.key"
        request, extension_file = directory / f"{name}.csr", directory / f"{name}.ext"
        extension_file.write_text(extensions)
        openssl(
            *("req", "-new", "-newkey", f"rsa:{rsa_bits}", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", self.key, "-out", request),
        )
        signer: list[str | Path] = ["-signkey", self.key]
        if issuer is not None:
            signer = ["-CA", issuer.file, "-CAkey", issuer.key, "-CAcreateserial"]
        openssl(
            *("x509", "-req", "-in", request, *signer, f"-{digest}", "-days", str(days)),
            *("-extfile", extension_file, "-out", self.file),
        )


@dataclass(frozen=True)
class Shown:
    """What the server shows, and what the client trusts."""

    server: Certificate
    trusted: Path
    chain: tuple[Certificate, ...] = ()
    option: str = "ca_file"


def weak_key(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    return Shown(Certificate(directory, "server", root, NAMES, rsa_bits=1024), root.file)


def weak_key_of_the_ca(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    middle = Certificate(directory, "middle", root, CA, rsa_bits=1024)
    return Shown(Certificate(directory, "server", middle, NAMES), root.file, (middle,))


def weak_digest(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    return Shown(Certificate(directory, "server", root, NAMES, digest="sha1"), root.file)


def purpose(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    return Shown(Certificate(directory, "server", root, NAMES + "extendedKeyUsage=clientAuth\n"), root.file)


def no_ca(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    middle = Certificate(directory, "middle", root, "basicConstraints=critical,CA:false\n")
    return Shown(Certificate(directory, "server", middle, NAMES), root.file, (middle,))


def name_constraint(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    middle = Certificate(directory, "middle", root, CA + "nameConstraints=critical,permitted;DNS:example.test\n")
    return Shown(Certificate(directory, "server", middle, NAMES), root.file, (middle,))


def too_long(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA.replace("CA:true", "CA:true,pathlen:0"))
    middle = Certificate(directory, "middle", root, CA)
    return Shown(Certificate(directory, "server", middle, NAMES), root.file, (middle,))


def missing_intermediate(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    middle = Certificate(directory, "middle", root, CA)
    return Shown(Certificate(directory, "server", middle, NAMES), root.file)


def other_root(directory: Path) -> Shown:
    root, other = (Certificate(directory, name, None, CA) for name in ("root", "other"))
    return Shown(Certificate(directory, "server", root, NAMES), other.file, (root,))


def unhashed(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA)
    trusted = directory / "trusted"
    trusted.mkdir()
    (trusted / "root.pem").write_bytes(root.file.read_bytes())
    return Shown(Certificate(directory, "server", root, NAMES), trusted, option="ca_path")


def expired_root(directory: Path) -> Shown:
    root = Certificate(directory, "root", None, CA, days=-1)
    return Shown(Certificate(directory, "server", root, NAMES), root.file)


REASONS: list[tuple[Callable[[Path], Shown], str]] = [
    (weak_key, "uses a key that is too small for the security level of this machine's OpenSSL"),
    (weak_key_of_the_ca, "uses a key that is too small for the security level of this machine's OpenSSL"),
    (weak_digest, "has a signature of a weak kind, such as SHA-1"),
    (purpose, "is not for servers (extended key usage)"),
    (no_ca, "is signed with a certificate that is not a CA's"),
    (name_constraint, "may not sign for this name (name constraints)"),
    (too_long, "is signed through more CAs than are allowed"),
    (missing_intermediate, "or the server does not send the intermediate certificates"),
    (other_root, "is signed by a CA that is not trusted"),
    (unhashed, "Run `openssl rehash` on it"),
    (expired_root, "has expired, or one that it is signed with, which may be the CA in"),
]


@pytest.mark.parametrize(("make", "says"), REASONS, ids=[make.__name__ for make, _ in REASONS])
def test_reason_is_told(connect: StartClient, tmp_path: Path, make: Callable[[Path], Shown], says: str) -> None:
    shown = make(tmp_path)
    chain = tmp_path / "chain.pem"
    chain.write_bytes(b"".join(shown_one.file.read_bytes() for shown_one in (shown.server, *shown.chain)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(chain, shown.server.key)
    with ScriptedServer(context) as server:
        options = {"allow_insecure": 0, "ws_host": f"localhost:{server.port}", shown.option: str(shown.trusted)}
        client = connect(server, **options)
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            server.accept()
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == ("BIRD_ERR_TLS", "tls"), error
        assert says in error["message"]


@pytest.mark.parametrize("kind", ["key", "digest"])
def test_client_certificate_that_is_too_weak(connect: StartClient, tmp_path: Path, kind: str) -> None:
    root = Certificate(tmp_path, "root", None, CA)
    rsa_bits, digest = (1024, "sha256") if kind == "key" else (2048, "sha1")
    weak = Certificate(tmp_path, "client", root, "", rsa_bits=rsa_bits, digest=digest)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_certificate = Certificate(tmp_path, "server", root, NAMES)
    context.load_cert_chain(server_certificate.file, server_certificate.key)
    with ScriptedServer(context) as server:
        client = connect(
            server,
            allow_insecure=0,
            ws_host=f"localhost:{server.port}",
            ca_file=str(root.file),
            client_cert_file=str(weak.file),
            client_key_file=str(weak.key),
        )
        error = client.wait_for("error")
        assert (error["error"], error["field"]) == ("BIRD_ERR_TLS", "client_cert_file"), error
        assert "too weak for the security level of this machine's OpenSSL" in error["message"]
