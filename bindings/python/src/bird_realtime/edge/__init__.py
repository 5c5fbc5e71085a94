"""A Bird Realtime edge for one machine: WebSocket side, REST API, auth backend and test controls on one port.

Start it with `bird-realtime edge` or, in a test suite, with `bird_realtime.testing.EdgeServer`. The rules are
in `hub` (connections, channels, members), `rest` and `auth_backend`, none of which does I/O; `websocket_side`
and `server` join them to aiohttp. `controls` is what a test may do to a running edge.
"""
