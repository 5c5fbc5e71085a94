"""A certificate for the servers of a run, which signs itself, so that clients can trust it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    file: Path
    with_key: Path

    @property
    def server_environment(self) -> dict[str, str]:
        return {"BENCH_SERVER_FILE": str(self.with_key)}

    @property
    def client_environment(self) -> dict[str, str]:
        return {"BENCH_CA_FILE": str(self.file)}


@contextmanager
def certificate() -> Iterator[Certificate]:
    """For localhost and 127.0.0.1."""
    with tempfile.TemporaryDirectory() as directory:
        made = Certificate(Path(directory, "certificate.pem"), Path(directory, "with-key.pem"))
        key = Path(directory, "key.pem")
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
                *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-addext", "keyUsage=critical,digitalSignature,keyCertSign", "-keyout", key, "-out", made.file),
            ],
            check=True,
            capture_output=True,
        )
        made.with_key.write_bytes(made.file.read_bytes() + key.read_bytes())
        yield made
