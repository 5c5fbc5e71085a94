"""The library's log in terms of standard logging: the loggers bird_realtime.connection, bird_realtime.channel, ..."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

from . import _abi

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter

_LEVELS = {
    _abi.BIRD_LOG_ERROR: logging.ERROR,
    _abi.BIRD_LOG_WARN: logging.WARNING,
    _abi.BIRD_LOG_INFO: logging.INFO,
}


class GuardedLogger(Adapter):
    """A logging handler of the program's that raises ends nothing: it is told where logging's own handlers tell it."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:
            _tell()

    def handle(self, record: logging.LogRecord) -> None:
        try:
            self.logger.handle(record)
        except Exception:
            _tell()


def _tell() -> None:
    if logging.raiseExceptions:
        traceback.print_exc()


#: for what the package itself has to say
package = GuardedLogger(logging.getLogger("bird_realtime"), {})
_LOGGERS = {
    area: GuardedLogger(logging.getLogger(f"bird_realtime.{name}"), {}) for area, name in _abi.LOG_AREA_NAMES.items()
}


def emit(entry: _abi.LogEntryDetail, message: str) -> None:
    """One entry, with the time at which it was made; client_number, channel and status are attributes of its record."""
    logger = _LOGGERS.get(entry.area, package)
    level = _LEVELS.get(entry.level, logging.DEBUG)
    if not logger.isEnabledFor(level):
        return
    extra = {
        "client_number": entry.client_number,
        "channel": (entry.channel_name or b"").decode(),
        "status": _abi.STATUS_NAMES.get(entry.status, str(entry.status)),
    }
    record = logger.logger.makeRecord(logger.name, level, "libbirdrealtime", 0, message, (), None, extra=extra)
    record.created = entry.time_ms / 1000
    record.msecs = entry.time_ms % 1000
    logger.handle(record)
