"""The library's log in terms of standard logging: the loggers bird_realtime.connection, bird_realtime.channel, ..."""

from __future__ import annotations

import logging

from . import _abi

_LEVELS = {
    _abi.BIRD_LOG_ERROR: logging.ERROR,
    _abi.BIRD_LOG_WARN: logging.WARNING,
    _abi.BIRD_LOG_INFO: logging.INFO,
}
_LOGGERS = {area: logging.getLogger(f"bird_realtime.{name}") for area, name in _abi.LOG_AREA_NAMES.items()}
_OTHERS = logging.getLogger("bird_realtime")


def emit(entry: _abi.LogEntryDetail, message: str) -> None:
    """One entry, with the time at which it was made; client_number, channel and status are attributes of its record."""
    logger = _LOGGERS.get(entry.area, _OTHERS)
    level = _LEVELS.get(entry.level, logging.DEBUG)
    if not logger.isEnabledFor(level):
        return
    extra = {
        "client_number": entry.client_number,
        "channel": (entry.channel_name or b"").decode(),
        "status": _abi.STATUS_NAMES.get(entry.status, str(entry.status)),
    }
    record = logger.makeRecord(logger.name, level, "libbirdrealtime", 0, message, (), None, extra=extra)
    record.created = entry.time_ms / 1000
    record.msecs = entry.time_ms % 1000
    logger.handle(record)
