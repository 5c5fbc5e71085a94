"""Counters of a client."""

from __future__ import annotations

from typing import NamedTuple


class Statistics(NamedTuple):
    """Counters since the client was created, and gauges of now: those of the header's bird_statistics."""

    bytes_received: int
    messages_received: int
    #: application events for the delivery, dropped ones included
    events_delivered: int
    #: messages that are no JSON object with a string event
    frames_malformed: int
    #: events for channels not subscribed here
    frames_unroutable: int
    bytes_sent: int
    messages_sent: int
    #: client events accepted by trigger, not written when the connection went
    client_events_lost: int
    #: handshakes
    connects: int
    #: connections tried
    attempts: int
    authorizations: int
    #: gauge: records not yet delivered
    queue_records: int
    #: gauge: their bytes
    queue_bytes: int
    #: times that reading paused for slow handlers
    read_pauses: int
    #: planned attempts that may_reconnect refused
    attempts_refused: int
    #: application events dropped because handlers were slow (overflow)
    events_dropped: int
    #: entries of watchlist frames that are none, or frames without any
    watchlist_entries_malformed: int
    #: changes of the network that concerned the client, hints and suspends included
    network_changes: int
    #: handshakes but the first
    reconnects: int
    #: connections that ended without the program's doing, and were not refused
    connections_lost: int
    #: authorizations refused, unusable, or not answered in time
    authorization_failures: int
    pings_sent: int
    #: pings that were not answered in time
    pongs_missed: int
    #: gauge: from the last ping to its pong, in microseconds; 0: none yet
    round_trip_us: int
    #: gauge: how long the present connection has lasted
    connected_ms: int
    #: how long all of them have lasted
    connected_total_ms: int
    #: gauge: client events not yet written
    outbound_bytes: int
    #: gauge: channels wanted, that of the member left out
    channels: int
    #: gauge: those of them that are subscribed
    channels_subscribed: int
    #: log entries that a sink, or the client's queue, had no room for
    log_entries_dropped: int
    #: bird:decryption_error events
    decryption_failures: int
    #: times the key of a subscribed channel was asked for again
    key_refreshes: int
