"""PyPI websocket-client, which is synchronous, with the json of the standard library."""

from __future__ import annotations

import websocket
from measurement import Run
from peer_messages import SUBSCRIBE, Client


def main() -> None:
    run = Run.of_arguments()
    ends: list[bool] = []
    client = Client(run, lambda: ends.append(True))
    socket = websocket.create_connection(client.url, skip_utf8_validation=False)
    while not ends:
        if client.receive(socket.recv()):
            socket.send(SUBSCRIBE)
    run.print()


main()
