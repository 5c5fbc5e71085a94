"""What is trusted follows the files as they change.

TLS sessions are resumed only while nothing has changed, if libcurl may keep them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import Authority, Certificate
from conftest import QUICK_BACKOFF, StartClient
from nginx import Nginx, Site
from paths import CLIENT_SCRIPT
from script_client import Record, ScriptClient
from scripted_server import Connection, ScriptedServer

NAMES = "DNS:localhost,DNS:edge.example.test,IP:127.0.0.1"
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@dataclass(frozen=True)
class World:
    directory: Path
    ca: Authority
    other_ca: Authority
    server: Certificate
    client: Certificate
    other_client: Certificate


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("trust")
    ca, other_ca = Authority(directory / "right"), Authority(directory / "other")
    clients = (ca.issue("client", None), ca.issue("other-client", None))
    return World(directory, ca, other_ca, ca.issue("server", NAMES), *clients)


@pytest.fixture
def edge(world: World) -> Iterator[ScriptedServer]:
    with ScriptedServer(world.server.server_context()) as server:
        yield server


def replace(path: Path, content: Path | bytes) -> None:
    """As careful programs do it: the file is another one from one moment to the next."""
    new = path.with_suffix(".new")
    new.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    new.rename(path)


def establish(edge: ScriptedServer, client: ScriptClient) -> Connection:
    connection = edge.accept()
    connection.establish()
    client.wait_for_state("connected")
    return connection


def is_resumed(connection: Connection) -> bool:
    assert isinstance(connection.socket, ssl.SSLSocket)
    return bool(connection.socket.session_reused)


# A file that changes


def refuse(edge: ScriptedServer) -> None:
    """The client ends the handshake."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        edge.accept().read_request()


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("writes", ["replaces", "overwrites"])
def test_next_connection_sees_the_file_that_has_changed(
    world: World, edge: ScriptedServer, connect: StartClient, tmp_path: Path, writes: str
) -> None:
    """A CA that is withdrawn, and one that comes."""
    trusted = tmp_path / "ca.pem"

    def change(content: Path) -> None:
        if writes == "replaces":
            replace(trusted, content)
        else:
            trusted.write_bytes(content.read_bytes())

    change(world.ca.file)
    client = connect(edge, ws_host=f"localhost:{edge.port}", allow_insecure=0, ca_file=str(trusted))
    connection = establish(edge, client)
    change(world.other_ca.file)
    connection.close()
    refuse(edge)
    assert "is not signed by a trusted CA" in client.wait_for("error", error="BIRD_ERR_TLS")["message"]
    change(world.ca.file)
    # Attempts that began before may still fail.
    while True:
        try:
            connection = edge.accept()
            connection.establish()
        except (ssl.SSLError, ConnectionError):
            continue
        break
    client.wait_for_state("connected")
    # A client that is new in the process sees the same.
    change(world.other_ca.file)
    client.do("crowd", 1, f"localhost:{edge.port}")
    refuse(edge)


@pytest.mark.c_only("libcurl keeps what it has parsed: that is far below both faces")
def test_authorizer_sees_the_file_that_has_changed(
    world: World, edge: ScriptedServer, connect: StartClient, tmp_path: Path
) -> None:
    trusted = tmp_path / "ca.pem"
    replace(trusted, world.ca.file)
    with ScriptedServer() as plain:
        endpoint = f"https://localhost:{edge.port}/auth"
        client = connect(plain, auth_endpoint=endpoint, ca_file=str(trusted))
        connection = plain.accept()
        connection.establish()
        client.do("subscribe", "private-a", 0)
        post = edge.accept()
        post.read_post()
        post.respond(200, '{"auth": "key:signature"}')
        connection.join("private-a", auth="key:signature")
        client.wait_for("subscribed")
        replace(trusted, world.other_ca.file)
        client.do("subscribe", "private-b", 0)
        for _ in range(4):  # the first and three more
            refuse(edge)
        assert "is not signed by a trusted CA" in client.wait_for("subscription_error")["message"]


# Files that would make their reader wait


def fifo(path: Path) -> Path:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


FILES = ["ca_file", "client_cert_file", "client_key_file"]


def options(world: World, **others: Path) -> dict[str, str]:
    files = {
        "ca_file": world.ca.file,
        "client_cert_file": world.client.file,
        "client_key_file": world.client.key,
        **others,
    }
    return {name: str(path) for name, path in files.items()}


def create(edge: ScriptedServer, program: list[str | Path], **options: str) -> Record:
    client = ScriptClient(program, app_key="pk_test", ws_host=f"localhost:{edge.port}", **options)
    client.finish()
    return client.created


@pytest.mark.parametrize("option", [*FILES, "ca_path"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_create_wants_regular_files(world: World, edge: ScriptedServer, tmp_path: Path, option: str, kind: str) -> None:
    path = fifo(tmp_path / "pipe") if kind == "pipe" else Path("/dev/zero")
    created = create(edge, [CLIENT_SCRIPT], **options(world, **{option: path}))
    assert (created["status"], created["field"]) == ("BIRD_ERR_VALUE", option), created
    problem = "is not a directory" if option == "ca_path" else "is not a regular file"
    assert f"{path}, which {problem}" in created["message"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_variable_names_a_regular_file(edge: ScriptedServer, tmp_path: Path, kind: str) -> None:
    path = fifo(tmp_path / "pipe") if kind == "pipe" else Path("/dev/zero")
    created = create(edge, ["env", f"SSL_CERT_FILE={path}", CLIENT_SCRIPT])
    assert (created["status"], created["field"]) == ("BIRD_ERR_VALUE", "SSL_CERT_FILE"), created
    assert f"{path}, which is not a regular file" in created["message"]


def becomes_pipe(path: Path) -> str:
    fifo(path)
    return "is not a regular file"


def goes_away(path: Path) -> str:
    path.unlink()
    return "cannot be read: No such file or directory"


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("option", [*FILES, "SSL_CERT_FILE"])
@pytest.mark.parametrize("change", [becomes_pipe, goes_away], ids=["becomes a pipe", "goes away"])
def test_file_is_looked_at_before_each_connection(
    world: World, edge: ScriptedServer, tmp_path: Path, option: str, change: Callable[[Path], str]
) -> None:
    """And the reactor does not wait for it."""
    path = tmp_path / "file.pem"
    settings = options(world)
    source = Path(settings["ca_file" if option == "SSL_CERT_FILE" else option])
    replace(path, source)
    program: list[str | Path] = [CLIENT_SCRIPT]
    if option == "SSL_CERT_FILE":
        program = ["env", f"SSL_CERT_FILE={path}", *program]
        del settings["ca_file"]
    else:
        settings[option] = str(path)
    with ExitStack() as stack:
        host = f"localhost:{edge.port}"
        client = ScriptClient(program, app_key="pk_test", ws_host=host, **QUICK_BACKOFF, **settings)
        stack.callback(client.finish)
        client.do("connect")
        connection = establish(edge, client)
        problem = change(path)
        connection.close()
        error = client.wait_for("error", error="BIRD_ERR_TLS")
        assert error["field"] == option
        assert error["message"] == f"No connection to {host}: {option} {path} {problem}."
        replace(path, source)
        establish(edge, client)


# Sessions


def reconnects(edge: ScriptedServer, client: ScriptClient, connection: Connection, *, cut: bool = False) -> Connection:
    """Without `cut` TLS ends in order: OpenSSL does not resume a session of TLS 1.2 that has not."""
    # The client has read the server's tickets when it has read what came behind them.
    client.do("subscribe", "orders", 0)
    connection.join("orders")
    client.wait_for("subscribed")
    if not cut:
        assert isinstance(connection.socket, ssl.SSLSocket)
        with contextlib.suppress(OSError):  # the client ends it in its turn, by a TCP end alone
            connection.socket.unwrap()
    connection.close()
    client.wait_for_state("unavailable")
    connection = edge.accept()
    connection.establish()
    client.wait_for_state("connected")
    return connection


def keeps_sessions(client: ScriptClient) -> bool:
    """Before 8.8, libcurl frees memory twice when it has none for a session, so that all handshakes are full ones."""
    dump = json.loads(client.do("dump")["dump"])
    major, minor = re.findall(r"\d+", dump["library"]["libcurl"])[:2]
    return (int(major), int(minor)) >= (8, 8)


def context_of(certificate: Certificate, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = certificate.server_context()
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize(
    ("version", "cut"),
    [(ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, False), (ssl.TLSVersion.TLSv1_3, True)],
    ids=["TLS 1.2", "TLS 1.3", "TLS 1.3, cut"],
)
def test_reconnect_resumes_the_session(world: World, connect: StartClient, version: ssl.TLSVersion, cut: bool) -> None:
    with ScriptedServer(context_of(world.server, version)) as edge:
        host = f"localhost:{edge.port}"
        client = connect(edge, ws_host=host, allow_insecure=0, ca_file=str(world.ca.file))
        connection = establish(edge, client)
        assert not is_resumed(connection)
        for _ in range(3):
            connection = reconnects(edge, client, connection, cut=cut)
            assert is_resumed(connection) == keeps_sessions(client)


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
@pytest.mark.parametrize("changed", ["ca_file", "client_cert_file"])
def test_changed_file_starts_a_session_anew(
    world: World, connect: StartClient, tmp_path: Path, version: ssl.TLSVersion, changed: str
) -> None:
    """The file has what it had before, and more or something else."""
    context = context_of(world.server, version)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(world.ca.file)

    def both(certificate: Certificate) -> bytes:
        return certificate.file.read_bytes() + certificate.key.read_bytes()

    files = {"ca_file": tmp_path / "ca.pem", "client_cert_file": tmp_path / "client.pem"}
    replace(files["ca_file"], world.ca.file)
    replace(files["client_cert_file"], both(world.client))
    with ScriptedServer(context) as edge:
        settings = {name: str(path) for name, path in files.items()}
        client = connect(edge, ws_host=f"localhost:{edge.port}", allow_insecure=0, **settings)
        connection = reconnects(edge, client, establish(edge, client))
        assert is_resumed(connection) == keeps_sessions(client)
        more = world.ca.file.read_bytes() + world.other_ca.file.read_bytes()
        replace(files[changed], both(world.other_client) if changed == "client_cert_file" else more)
        connection = reconnects(edge, client, connection)
        assert not is_resumed(connection)
        assert isinstance(connection.socket, ssl.SSLSocket)
        expected = "other-client" if changed == "client_cert_file" else "client"
        certificate = connection.socket.getpeercert()
        assert certificate is not None
        assert certificate["subject"] == ((("commonName", expected),),)


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
@pytest.mark.parametrize(
    "other",
    [{"tls_verify_name": "edge.example.test"}, {"tls_min_version": "1.3"}, {"ca_file": "another"}],
    ids=lambda other: next(iter(other)),
)
def test_clients_of_one_trust_setting_share_sessions(world: World, connect: StartClient, other: dict[str, str]) -> None:
    """A second client of the process takes up what the first has left; one with other settings does not."""
    same = world.directory / "same-ca.pem"
    replace(same, world.ca.file)
    with ScriptedServer(context_of(world.server, ssl.TLSVersion.TLSv1_3)) as edge:
        host = f"localhost:{edge.port}"
        client = connect(edge, ws_host=host, allow_insecure=0, ca_file=str(world.ca.file))
        connection = establish(edge, client)
        connection = reconnects(edge, client, connection)
        assert is_resumed(connection) == keeps_sessions(client)
        client.do("crowd", 1, host)
        fellow = edge.accept()
        assert is_resumed(fellow) == keeps_sessions(client)
        fellow.establish()
        setting = {"ca_file": str(same)} if "ca_file" in other else other
        for name, value in setting.items():
            client.do("option", name, value)
        client.do("crowd", 1, host)
        stranger = edge.accept()
        assert not is_resumed(stranger)
        stranger.establish()


@pytest.mark.c_only("the way to a connection is the engine's, below both faces")
def test_directory_of_certificates_leaves_no_sessions(world: World, edge: ScriptedServer, connect: StartClient) -> None:
    """Nothing tells that a certificate in it has changed."""
    host = f"localhost:{edge.port}"
    client = connect(edge, ws_host=host, allow_insecure=0, ca_path=str(world.ca.hashed_directory))
    assert not is_resumed(reconnects(edge, client, establish(edge, client)))


# The machine's own policy


def with_policy(world: World, directory: Path, demanded: str, port: int, **options: str) -> ScriptClient:
    """A client on a machine whose openssl.cnf says so."""
    configuration = directory / "openssl.cnf"
    configuration.write_text(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = policy\n"
        f"[policy]\nMinProtocol = {demanded}\nCipherString = DEFAULT@SECLEVEL=0\n"
    )
    program: list[str | Path] = ["env", f"OPENSSL_CONF={configuration}", CLIENT_SCRIPT]
    settings = {"ws_host": f"localhost:{port}", "ca_file": str(world.ca.file), **QUICK_BACKOFF, **options}
    client = ScriptClient(program, app_key="pk_test", **settings)
    client.do("connect")
    return client


@pytest.mark.parametrize(
    ("demanded", "given", "is_refused"),
    [("TLSv1.3", None, True), ("TLSv1.3", "1.2", False), ("TLSv1.2", None, False), ("TLSv1", None, False)],
)
def test_policy_of_the_machine(
    world: World, tmp_path: Path, demanded: str, given: str | None, is_refused: bool
) -> None:
    """The server speaks TLS 1.2 only."""
    with ScriptedServer(context_of(world.server, ssl.TLSVersion.TLSv1_2)) as edge:
        client = with_policy(world, tmp_path, demanded, edge.port, **({"tls_min_version": given} if given else {}))
        if is_refused:
            refuse(edge)
            error = client.wait_for("error")
            assert error["error"] == "BIRD_ERR_TLS"
            assert "TLS 1.3 or later, which the OpenSSL configuration of this machine" in error["message"]
        else:
            establish(edge, client)
        client.finish()


def test_policy_never_allows_less_than_tls_1_2(world: World, tmp_path: Path) -> None:
    site = Site(world.server, "ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;")
    with Nginx(tmp_path, "127.0.0.1:1", {"old": site}) as nginx:
        client = with_policy(world, tmp_path, "TLSv1", nginx.ports["old"])
        assert "TLS 1.2 or later, which this library demands" in client.wait_for("error")["message"]
        client.finish()
