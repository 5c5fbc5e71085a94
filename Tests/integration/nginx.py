"""nginx with a configuration of the tests': TLS in front of a server that speaks plaintext."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from certificates import Certificate
from scripted_server import DEADLINE_S

# Debian has it in a directory that is not on everybody's path.
SEARCH_PATH = os.environ["PATH"] + ":/usr/sbin"

CONFIGURATION = """\
daemon off;
worker_processes 1;
pid {directory}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{servers}
}}
"""

SERVER = """\
    server {{
        listen {address} ssl;
        ssl_certificate {certificate.file};
        ssl_certificate_key {certificate.key};
        {directives}
        location / {{
            proxy_pass http://{upstream};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
            proxy_read_timeout 1h;
        }}
        location = /auth {{
            return 200 '{{"auth":"key:signature"}}';
        }}
    }}
"""


@dataclass(frozen=True)
class Site:
    """One port with its certificate, and further directives of nginx."""

    certificate: Certificate
    directives: str = ""
    host: str = "127.0.0.1"


class Nginx:
    """Takes over sockets that listen already: no port is guessed, and nobody has to wait for its start."""

    def __init__(self, directory: Path, upstream: str, sites: Mapping[str, Site]) -> None:
        self.ports: dict[str, int] = {}
        listeners, servers = [], []
        for name, site in sites.items():
            family, host = (socket.AF_INET6, f"[{site.host}]") if ":" in site.host else (socket.AF_INET, site.host)
            listener = socket.create_server((site.host, 0), family=family, backlog=128)
            listeners.append(listener)
            self.ports[name] = int(listener.getsockname()[1])
            servers.append(
                SERVER.format(
                    address=f"{host}:{self.ports[name]}",
                    certificate=site.certificate,
                    directives=site.directives,
                    upstream=upstream,
                )
            )
        configuration = directory / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(directory=directory, servers="".join(servers)))
        fds = [listener.fileno() for listener in listeners]
        self._process = subprocess.Popen(
            ["nginx", "-p", directory, "-c", configuration, "-e", directory / "error.log"],  # noqa: S607
            pass_fds=fds,
            env={"PATH": SEARCH_PATH, "NGINX": "".join(f"{fd};" for fd in fds)},
        )
        for listener in listeners:
            listener.close()

    def __enter__(self) -> Nginx:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        assert self._process.wait(DEADLINE_S) == 0
