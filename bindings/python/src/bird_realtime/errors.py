"""The exceptions of the package: one tree under BirdRealtimeError."""

# The names say what happened; an Error suffix on each would only be longer.
# ruff: noqa: N818

from __future__ import annotations

from typing import ClassVar

from . import _abi


class BirdRealtimeError(Exception):
    """What went wrong, as a sentence (``str(error)``, ``error.message``) and as numbers.

    ``status`` is the library's status (a ``BIRD_ERR_*`` number), ``area`` what it belongs to ("argument",
    "connection", "channel", "authorization", "signin", "system"), ``field`` the option, argument or step concerned.
    ``code`` is the code of the wire (a close code or that of an error frame), ``http_status`` that of the upgrade,
    the proxy or the authorizer, each None if there is none. ``channel`` is the name of the channel that failed or that
    the edge named in its error, else "". ``retriable`` is true if the library tries again by itself or the same call
    may succeed later.
    """

    default_status: ClassVar[int] = 0

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        area: str = "",
        field: str = "",
        code: int | None = None,
        http_status: int | None = None,
        curl_code: int | None = None,
        endpoint: str = "",
        channel: str = "",
        retriable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = self.default_status if status is None else status
        self.area = area
        self.field = field
        self.code = code
        self.http_status = http_status
        self.curl_code = curl_code
        self.endpoint = endpoint
        self.channel = channel
        self.retriable = retriable

    @property
    def status_name(self) -> str:
        """The constant's name, such as "BIRD_ERR_NAME"."""
        return _abi.STATUS_NAMES.get(self.status, f"unknown status {self.status}")


class LibraryError(BirdRealtimeError, ImportError):
    """libbirdrealtime could not be loaded; the message lists every path tried and why it failed."""


class InvalidArgument(BirdRealtimeError, ValueError):
    """An argument, option, name or payload that is not acceptable; ``field`` names it."""

    default_status = _abi.BIRD_ERR_ARGUMENT


class NotSupported(BirdRealtimeError):
    """Not available on this kind of channel or in this build."""

    default_status = _abi.BIRD_ERR_UNSUPPORTED


class InvalidState(BirdRealtimeError):
    """Not possible in the present connection state."""

    default_status = _abi.BIRD_ERR_STATE


class Closed(BirdRealtimeError):
    """The client was closed."""

    default_status = _abi.BIRD_ERR_CLOSED


class NotSubscribed(BirdRealtimeError):
    """The channel is not subscribed now. Wait for ``bird:subscription_succeeded`` or ``channel.wait_subscribed()``."""

    default_status = _abi.BIRD_ERR_NOT_SUBSCRIBED


class QueueFull(BirdRealtimeError):
    """A bounded queue is full; try again when it has been worked off."""

    default_status = _abi.BIRD_ERR_FULL


class CalledInHandler(BirdRealtimeError):
    """A waiting call made inside a handler: it would wait for what only comes after the handler."""

    default_status = _abi.BIRD_ERR_CALLBACK


class TimedOut(BirdRealtimeError, TimeoutError):
    """The time given, or a deadline of the library, has passed."""

    default_status = _abi.BIRD_ERR_TIMEOUT


class ForkedClient(BirdRealtimeError):
    """The client belongs to the parent process. Create one after the fork."""

    default_status = _abi.BIRD_ERR_FORKED


class AuthorizationError(BirdRealtimeError):
    """The authorizer or the edge said no, or no usable answer came.

    An authorizer function raises it to deny; with ``retriable=True`` the library asks again.
    """

    default_status = _abi.BIRD_ERR_DENIED


class ConnectionFailed(BirdRealtimeError):
    """No connection, or it was lost; ``code`` tells why the edge closed it."""

    default_status = _abi.BIRD_ERR_CONNECT


class GaveUp(ConnectionFailed):
    """As many reconnects as ``reconnect_attempts_max`` were in vain. ``connect()`` begins anew."""

    default_status = _abi.BIRD_ERR_GAVE_UP


class IdentityMissing(BirdRealtimeError):
    """The edge accepted a signin without saying which member signed in. The connection stays."""

    default_status = _abi.BIRD_ERR_IDENTITY


class MessageLost(BirdRealtimeError):
    """A message of the edge was malformed and is lost; the connection stays."""

    default_status = _abi.BIRD_ERR_MALFORMED


class EdgeError(BirdRealtimeError):
    """An error frame of the edge; ``channel`` is the one that it names, if it names one."""

    default_status = _abi.BIRD_ERR_SERVER


class DecryptionError(BirdRealtimeError):
    """An event of an encrypted channel could not be opened."""

    default_status = _abi.BIRD_ERR_DECRYPTION


_CLASSES: dict[int, type[BirdRealtimeError]] = {
    _abi.BIRD_ERR_ARGUMENT: InvalidArgument,
    _abi.BIRD_ERR_CLOSED: Closed,
    _abi.BIRD_ERR_OPTION: InvalidArgument,
    _abi.BIRD_ERR_VALUE: InvalidArgument,
    _abi.BIRD_ERR_STATE: InvalidState,
    _abi.BIRD_ERR_NAME: InvalidArgument,
    _abi.BIRD_ERR_NOT_SUBSCRIBED: NotSubscribed,
    _abi.BIRD_ERR_UNSUBSCRIBED: NotSubscribed,
    _abi.BIRD_ERR_PAYLOAD: InvalidArgument,
    _abi.BIRD_ERR_SIZE: InvalidArgument,
    _abi.BIRD_ERR_FULL: QueueFull,
    _abi.BIRD_ERR_CALLBACK: CalledInHandler,
    _abi.BIRD_ERR_TIMEOUT: TimedOut,
    _abi.BIRD_ERR_FORKED: ForkedClient,
    _abi.BIRD_ERR_UNSUPPORTED: NotSupported,
    _abi.BIRD_ERR_DENIED: AuthorizationError,
    _abi.BIRD_ERR_AUTH: AuthorizationError,
    _abi.BIRD_ERR_REFUSED: ConnectionFailed,
    _abi.BIRD_ERR_LOST: ConnectionFailed,
    _abi.BIRD_ERR_RESOLVE: ConnectionFailed,
    _abi.BIRD_ERR_CONNECT: ConnectionFailed,
    _abi.BIRD_ERR_TLS: ConnectionFailed,
    _abi.BIRD_ERR_PROXY: ConnectionFailed,
    _abi.BIRD_ERR_UPGRADE: ConnectionFailed,
    _abi.BIRD_ERR_PROTOCOL: ConnectionFailed,
    _abi.BIRD_ERR_SERVER: EdgeError,
    _abi.BIRD_ERR_DECRYPTION: DecryptionError,
    _abi.BIRD_ERR_GAVE_UP: GaveUp,
    _abi.BIRD_ERR_IDENTITY: IdentityMissing,
    _abi.BIRD_ERR_MALFORMED: MessageLost,
}


def class_of(status: int) -> type[BirdRealtimeError]:
    """The exception class of a status; the base class for those without one of their own and for unknown ones."""
    return _CLASSES.get(status, BirdRealtimeError)
