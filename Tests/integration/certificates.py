"""Certificate authorities of the tests' own, and what they sign, made with openssl."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

CONFIGURATION = """\
[ca]
default_ca = own
[own]
new_certs_dir = {directory}
database = {directory}/index
unique_subject = no
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
"""
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
DAY = timedelta(days=1)


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S607


def time_text(from_now: timedelta) -> str:
    return (datetime.now(timezone.utc) + from_now).strftime("%Y%m%d%H%M%SZ")


@dataclass(frozen=True)
class Certificate:
    file: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


class Authority:
    """A CA in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.file = directory / "ca.pem"
        self._key = directory / "ca.key"
        self._configuration = directory / "openssl.cnf"
        self._configuration.write_text(CONFIGURATION.format(directory=directory))
        (directory / "index").touch()
        subject = f"/CN=The CA {directory.name}"
        openssl("req", "-x509", *EC, "-nodes", "-days", "2", "-subj", subject, "-keyout", self._key, "-out", self.file)
        # As OpenSSL looks certificates up in a directory.
        self.hashed_directory = directory / "hashed"
        self.hashed_directory.mkdir()
        (self.hashed_directory / "ca.pem").write_bytes(self.file.read_bytes())
        openssl("rehash", self.hashed_directory)

    def issue(
        self,
        name: str,
        alternative_names: str | None,
        *,
        valid_from: timedelta = -DAY,
        valid_until: timedelta = DAY,
    ) -> Certificate:
        """A certificate with this common name; `alternative_names` as in "DNS:localhost,IP:127.0.0.1"."""
        certificate = Certificate(*(self.directory / f"{name}{end}" for end in (".pem", ".key")))
        request, extensions = (self.directory / f"{name}{end}" for end in (".csr", ".ext"))
        extensions.write_text(f"subjectAltName={alternative_names}\n" if alternative_names else "")
        openssl("req", *EC, "-nodes", "-subj", f"/CN={name}", "-keyout", certificate.key, "-out", request)
        openssl(
            *("ca", "-batch", "-notext", "-config", self._configuration, "-in", request, "-out", certificate.file),
            *("-cert", self.file, "-keyfile", self._key, "-extfile", extensions),
            *("-startdate", time_text(valid_from), "-enddate", time_text(valid_until)),
        )
        return certificate

    def server_context(self, alternative_names: str) -> ssl.SSLContext:
        """For a server of these names."""
        return self.issue("server", alternative_names).server_context()


def self_signed(directory: Path, name: str, alternative_names: str) -> Certificate:
    certificate = Certificate(directory / f"{name}.pem", directory / f"{name}.key")
    openssl(
        *("req", "-x509", *EC, "-nodes", "-days", "2", "-subj", f"/CN={name}"),
        *("-addext", f"subjectAltName={alternative_names}", "-keyout", certificate.key, "-out", certificate.file),
    )
    return certificate
