"""The C interface of include/birdrealtime.h in ctypes terms; a test compares the two."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

BIRD_VERSION_MAJOR = 0
BIRD_VERSION_MINOR = 1
BIRD_VERSION_PATCH = 0
BIRD_VERSION_NUMBER = 1000
SONAME = "libbirdrealtime.so.0"

BIRD_OK = 0
BIRD_ERR_ARGUMENT = -1
BIRD_ERR_HANDLE = -2
BIRD_ERR_CLOSED = -3
BIRD_ERR_OPTION = -4
BIRD_ERR_VALUE = -5
BIRD_ERR_STATE = -6
BIRD_ERR_NAME = -7
BIRD_ERR_NOT_SUBSCRIBED = -8
BIRD_ERR_UNSUBSCRIBED = -9
BIRD_ERR_PAYLOAD = -10
BIRD_ERR_SIZE = -11
BIRD_ERR_FULL = -12
BIRD_ERR_BUSY = -13
BIRD_ERR_CALLBACK = -14
BIRD_ERR_TIMEOUT = -15
BIRD_ERR_FORKED = -16
BIRD_ERR_SPACE = -17
BIRD_ERR_ANSWERED = -18
BIRD_ERR_UNSUPPORTED = -19
BIRD_ERR_SYSTEM = -20
BIRD_ERR_WOKEN = -21
BIRD_ERR_DENIED = -30
BIRD_ERR_AUTH = -31
BIRD_ERR_REFUSED = -32
BIRD_ERR_LOST = -33
BIRD_ERR_RESOLVE = -34
BIRD_ERR_CONNECT = -35
BIRD_ERR_TLS = -36
BIRD_ERR_PROXY = -37
BIRD_ERR_UPGRADE = -38
BIRD_ERR_PROTOCOL = -39
BIRD_ERR_SERVER = -40
BIRD_ERR_DECRYPTION = -41
BIRD_ERR_GAVE_UP = -42
BIRD_ERR_IDENTITY = -43
BIRD_ERR_MALFORMED = -44

BIRD_AREA_ARGUMENT = 1
BIRD_AREA_CONNECTION = 2
BIRD_AREA_CHANNEL = 3
BIRD_AREA_AUTHORIZATION = 4
BIRD_AREA_SIGNIN = 5
BIRD_AREA_SYSTEM = 6

BIRD_DELIVERY_THREAD = 0
BIRD_DELIVERY_QUEUE = 1
BIRD_DELIVERY_LOOP = 2

BIRD_OPTION_TEXT = 0
BIRD_OPTION_INT = 1
BIRD_OPTION_BOOL = 2

BIRD_GROUP_EDGE = 0
BIRD_GROUP_AUTHORIZATION = 1
BIRD_GROUP_TLS = 2
BIRD_GROUP_DEADLINES = 3
BIRD_GROUP_RECONNECT = 4
BIRD_GROUP_LIMITS = 5
BIRD_GROUP_DELIVERY = 6
BIRD_GROUP_OBSERVABILITY = 7

BIRD_NETWORK_UP = 1
BIRD_NETWORK_DOWN = 2
BIRD_NETWORK_RESUMED = 3

BIRD_QUEUE_RESERVED_RECORDS = 1024
BIRD_QUEUE_RESERVED_BYTES = 1048576
BIRD_DUMP_BYTES_MAX = 2097152

BIRD_STATE_INITIALIZED = 0
BIRD_STATE_CONNECTING = 1
BIRD_STATE_CONNECTED = 2
BIRD_STATE_UNAVAILABLE = 3
BIRD_STATE_DISCONNECTED = 4
BIRD_STATE_FAILED = 5

BIRD_SIGNIN_REFRESH = 1

BIRD_CHANNEL_PUBLIC = 0
BIRD_CHANNEL_PRIVATE = 1
BIRD_CHANNEL_PRESENCE = 2
BIRD_CHANNEL_ENCRYPTED = 3
BIRD_CHANNEL_MEMBER = 4

BIRD_CHANNEL_IDLE = 0
BIRD_CHANNEL_AUTHORIZING = 1
BIRD_CHANNEL_PENDING = 2
BIRD_CHANNEL_SUBSCRIBED = 3
BIRD_CHANNEL_FAILED = 4
BIRD_CHANNEL_UNSUBSCRIBED = 5

BIRD_RECORD_EVENT = 1
BIRD_RECORD_SUBSCRIBED = 2
BIRD_RECORD_SUBSCRIPTION_ERROR = 3
BIRD_RECORD_MEMBER_ADDED = 4
BIRD_RECORD_MEMBER_REMOVED = 5
BIRD_RECORD_CONNECTION_COUNT = 6
BIRD_RECORD_STATE = 7
BIRD_RECORD_ERROR = 8
BIRD_RECORD_SIGNIN_ERROR = 9
BIRD_RECORD_COMPLETION = 10
BIRD_RECORD_REQUEST = 11
BIRD_RECORD_SIGNED_IN = 12
BIRD_RECORD_CONNECTION_LOST = 13
BIRD_RECORD_CONNECTING_IN = 14
BIRD_RECORD_DECRYPTION_ERROR = 15
BIRD_RECORD_WATCHLIST = 16
BIRD_RECORD_LOG = 17

BIRD_LOG_OFF = 0
BIRD_LOG_ERROR = 1
BIRD_LOG_WARN = 2
BIRD_LOG_INFO = 3
BIRD_LOG_VERBOSE = 4

BIRD_LOG_AREA_CONNECTION = 1
BIRD_LOG_AREA_CHANNEL = 2
BIRD_LOG_AREA_AUTHORIZATION = 4
BIRD_LOG_AREA_SIGNIN = 8
BIRD_LOG_AREA_DELIVERY = 16
BIRD_LOG_AREA_NETWORK = 32
BIRD_LOG_AREA_WIRE = 64
BIRD_LOG_AREA_PROCESS = 128

BIRD_DATA_NONE = 0
BIRD_DATA_STRING = 1
BIRD_DATA_VALUE = 2

BIRD_OPERATION_SUBSCRIBE = 1
BIRD_OPERATION_SIGNIN = 2

BIRD_REQUEST_AUTHORIZE_CHANNEL = 1
BIRD_REQUEST_AUTHORIZE_MEMBER = 2
BIRD_REQUEST_HEADERS = 3
BIRD_REQUEST_RECONNECT = 4


class Record(ctypes.Structure):
    """struct bird_record."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("client", c_void_p),
        ("client_tag", c_uint64),
        ("channel", c_void_p),
        ("channel_tag", c_uint64),
        ("channel_name", c_void_p),
        ("event", c_void_p),
        ("data", c_void_p),
        ("data_length", c_size_t),
        ("channel_name_length", c_uint32),
        ("event_length", c_uint32),
        ("event_id", c_uint32),
        ("data_kind", c_uint32),
        ("operation_tag", c_uint64),
        ("detail", c_void_p),
        ("sender", c_void_p),
        ("sender_length", c_uint32),
        ("reserved", c_uint32),
    )


class StateChangeDetail(ctypes.Structure):
    """bird_state_change."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("previous", c_int32),
        ("current", c_int32),
        ("close_code", c_int32),
        ("attempt", c_int32),
        ("reason", c_int32),
        ("delay_ms", c_int64),
        ("reason_text", c_char_p),
        ("connection_id", c_char_p),
        ("policy", c_char_p),
    )


class SubscriptionDetail(ctypes.Structure):
    """bird_subscription."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("is_resubscribe", c_int32),
        ("interrupted_ms", c_int64),
        ("will_retry", c_int32),
        ("member_count", c_uint32),
        ("my_id", c_char_p),
        ("error", c_void_p),
        ("my_id_length", c_size_t),
        ("members", c_void_p),
    )


class MemberDetail(ctypes.Structure):
    """bird_member."""

    _fields_ = (("struct_size", c_uint32), ("id_length", c_uint32), ("id", c_char_p))


class WatchlistDetail(ctypes.Structure):
    """bird_watchlist."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("id_count", c_uint32),
        ("ids", POINTER(c_char_p)),
        ("id_lengths", POINTER(c_size_t)),
    )


class FailureDetail(ctypes.Structure):
    """bird_failure."""

    _fields_ = (("struct_size", c_uint32), ("reserved", c_uint32), ("error", c_void_p))


class CompletionDetail(ctypes.Structure):
    """bird_completion."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("operation", c_int32),
        ("status", c_int32),
        ("reserved", c_uint32),
        ("error", c_void_p),
    )


class QuestionDetail(ctypes.Structure):
    """bird_question."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("request_kind", c_int32),
        ("request", c_void_p),
        ("deadline_ms", c_int64),
        ("connection_id", c_char_p),
        ("channel_name", c_char_p),
        ("endpoint", c_char_p),
        ("cause", c_void_p),
        ("attempt", c_int32),
        ("reserved", c_uint32),
    )


class Header(ctypes.Structure):
    """bird_header."""

    _fields_ = (("name", c_char_p), ("value", c_char_p))


class OptionRow(ctypes.Structure):
    """bird_option."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("type", c_int32),
        ("key", c_char_p),
        ("unit", c_char_p),
        ("default_text", c_char_p),
        ("accepts", c_char_p),
        ("minimum", c_int64),
        ("maximum", c_int64),
        ("group", c_int32),
        ("is_live", c_int32),
        ("purpose", c_char_p),
    )


class LogEntryDetail(ctypes.Structure):
    """bird_log_entry."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("level", c_int32),
        ("area", c_int32),
        ("status", c_int32),
        ("time_ms", c_int64),
        ("client_tag", c_uint64),
        ("client_number", c_uint64),
        ("message", c_char_p),
        ("message_length", c_size_t),
        ("channel_name", c_char_p),
    )


class StatisticsCounters(ctypes.Structure):
    """bird_statistics."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("bytes_received", c_uint64),
        ("messages_received", c_uint64),
        ("events_delivered", c_uint64),
        ("frames_malformed", c_uint64),
        ("frames_unroutable", c_uint64),
        ("bytes_sent", c_uint64),
        ("messages_sent", c_uint64),
        ("client_events_lost", c_uint64),
        ("connects", c_uint64),
        ("attempts", c_uint64),
        ("authorizations", c_uint64),
        ("queue_records", c_uint64),
        ("queue_bytes", c_uint64),
        ("read_pauses", c_uint64),
        ("attempts_refused", c_uint64),
        ("events_dropped", c_uint64),
        ("watchlist_entries_malformed", c_uint64),
        ("network_changes", c_uint64),
        ("reconnects", c_uint64),
        ("connections_lost", c_uint64),
        ("authorization_failures", c_uint64),
        ("pings_sent", c_uint64),
        ("pongs_missed", c_uint64),
        ("round_trip_us", c_uint64),
        ("connected_ms", c_uint64),
        ("connected_total_ms", c_uint64),
        ("outbound_bytes", c_uint64),
        ("channels", c_uint64),
        ("channels_subscribed", c_uint64),
        ("log_entries_dropped", c_uint64),
        ("decryption_failures", c_uint64),
        ("key_refreshes", c_uint64),
    )


STRUCTS: dict[str, type[ctypes.Structure]] = {
    "bird_option": OptionRow,
    "bird_record": Record,
    "bird_state_change": StateChangeDetail,
    "bird_subscription": SubscriptionDetail,
    "bird_member": MemberDetail,
    "bird_watchlist": WatchlistDetail,
    "bird_failure": FailureDetail,
    "bird_completion": CompletionDetail,
    "bird_question": QuestionDetail,
    "bird_header": Header,
    "bird_log_entry": LogEntryDetail,
    "bird_statistics": StatisticsCounters,
}

_status = c_int32
_handle = c_void_p
_function = c_void_p
_out_handle = POINTER(c_void_p)
_error = POINTER(c_void_p)
_out_int32 = POINTER(c_int32)
_out_int64 = POINTER(c_int64)
_out_size = POINTER(c_size_t)

# name: (result, argument, argument, ...)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "bird_version_number": (c_int32,),
    "bird_version_string": (c_char_p,),
    "bird_version_check": (_status, c_int32),
    "bird_status_name": (c_char_p, _status),
    "bird_status_message": (c_char_p, _status),
    "bird_error_status": (_status, c_void_p),
    "bird_error_area": (c_int32, c_void_p),
    "bird_error_field": (c_char_p, c_void_p),
    "bird_error_message": (c_char_p, c_void_p),
    "bird_error_code": (c_int32, c_void_p),
    "bird_error_http_status": (c_int32, c_void_p),
    "bird_error_curl_code": (c_int32, c_void_p),
    "bird_error_endpoint": (c_char_p, c_void_p),
    "bird_error_channel": (c_char_p, c_void_p),
    "bird_error_retriable": (c_int32, c_void_p),
    "bird_error_free": (None, c_void_p),
    "bird_options_create": (_status, _out_handle),
    "bird_options_destroy": (None, _handle),
    "bird_options_set": (_status, _handle, c_char_p, c_char_p, _error),
    "bird_options_set_int": (_status, _handle, c_char_p, c_int64, _error),
    "bird_options_count": (c_size_t,),
    "bird_options_describe": (_status, c_size_t, POINTER(OptionRow)),
    "bird_options_set_auth_header": (_status, _handle, c_char_p, c_char_p, _error),
    "bird_options_set_queue": (_status, _handle, _handle),
    "bird_options_set_tag": (_status, _handle, c_uint64),
    "bird_options_set_log": (_status, _handle, _function, c_void_p, _function),
    "bird_log_level_name": (c_char_p, c_int32),
    "bird_log_area_name": (c_char_p, c_int32),
    "bird_client_create": (_status, _handle, _out_handle, _error),
    "bird_client_destroy": (_status, _handle),
    "bird_client_connect": (_status, _handle, _error),
    "bird_client_disconnect": (_status, _handle),
    "bird_client_retry_now": (_status, _handle),
    "bird_client_set": (_status, _handle, c_char_p, c_char_p, _error),
    "bird_client_set_int": (_status, _handle, c_char_p, c_int64, _error),
    "bird_client_network_hint": (_status, _handle, c_int32),
    "bird_client_wait": (_status, _handle, c_int32, c_int64),
    "bird_client_flush": (_status, _handle, c_int64),
    "bird_client_close": (_status, _handle, c_int64),
    "bird_client_state": (_status, _handle, _out_int32),
    "bird_state_name": (c_char_p, c_int32),
    "bird_client_connection_id": (_status, _handle, c_char_p, c_size_t, _out_size),
    "bird_client_subscribe": (_status, _handle, c_char_p, c_uint64, _out_handle, _error),
    "bird_client_signin": (_status, _handle, c_uint32, c_uint64, _error),
    "bird_client_member_id": (_status, _handle, c_char_p, c_size_t, _out_size),
    "bird_client_member_channel": (_status, _handle, _out_handle),
    "bird_channel_release": (None, _handle),
    "bird_channel_unsubscribe": (_status, _handle),
    "bird_channel_trigger": (_status, _handle, c_char_p, c_char_p, c_size_t, _error),
    "bird_channel_state": (_status, _handle, _out_int32),
    "bird_channel_kind": (_status, _handle, _out_int32),
    "bird_channel_name": (_status, _handle, c_char_p, c_size_t, _out_size),
    "bird_channel_set_tag": (_status, _handle, c_uint64),
    "bird_channel_my_id": (_status, _handle, c_char_p, c_size_t, _out_size),
    "bird_channel_member_count": (_status, _handle, _out_size),
    "bird_channel_members": (_status, _handle, _out_handle),
    "bird_members_count": (c_size_t, c_void_p),
    "bird_members_id": (c_void_p, c_void_p, c_size_t),
    "bird_members_info": (c_char_p, c_void_p, c_size_t),
    "bird_members_id_length": (c_size_t, c_void_p, c_size_t),
    "bird_members_free": (None, c_void_p),
    "bird_channel_bind": (
        _status,
        _handle,
        c_char_p,
        _function,
        c_void_p,
        _function,
        POINTER(c_uint64),
        _error,
    ),
    "bird_client_bind": (
        _status,
        _handle,
        c_char_p,
        _function,
        c_void_p,
        _function,
        POINTER(c_uint64),
        _error,
    ),
    "bird_client_observe": (
        _status,
        _handle,
        c_uint64,
        _function,
        c_void_p,
        _function,
        POINTER(c_uint64),
        _error,
    ),
    "bird_client_unbind": (_status, _handle, c_uint64),
    "bird_channel_unbind_event": (_status, _handle, c_char_p),
    "bird_client_unbind_event": (_status, _handle, c_char_p),
    "bird_channel_unbind_all": (_status, _handle),
    "bird_client_unbind_all": (_status, _handle),
    "bird_client_intern": (_status, _handle, c_char_p, POINTER(c_uint32), _error),
    "bird_data_is_json": (c_int32, c_char_p, c_size_t),
    "bird_request_authorize": (_status, _handle, c_char_p, c_char_p, c_char_p, _error),
    "bird_request_headers": (_status, _handle, c_void_p, c_size_t, _error),
    "bird_request_proceed": (_status, _handle, c_int64, _error),
    "bird_request_fail": (_status, _handle, c_int32, c_char_p, _error),
    "bird_queue_create": (_status, _out_handle),
    "bird_queue_destroy": (_status, _handle),
    "bird_queue_fd": (_status, _handle, _out_int32),
    "bird_queue_wait": (_status, _handle, c_int64),
    "bird_queue_wake": (_status, _handle),
    "bird_queue_drain": (_status, _handle, _out_handle, _out_handle, _out_size, _out_size),
    "bird_batch_release": (_status, _handle),
    "bird_queue_dispatch": (_status, _handle, c_size_t, _out_size),
    "bird_client_statistics": (_status, _handle, POINTER(StatisticsCounters)),
    "bird_client_dump": (_status, _handle, c_char_p, c_size_t, _out_size),
    "bird_options_set_loop": (_status, _handle, _handle),
    "bird_loop_create": (_status, _out_handle),
    "bird_loop_destroy": (_status, _handle),
    "bird_loop_fd": (_status, _handle, _out_int32),
    "bird_loop_deadline": (_status, _handle, _out_int64),
    "bird_loop_run_once": (_status, _handle, c_int64),
    "bird_loop_wake": (_status, _handle),
    "bird_set_delivery_threads": (_status, c_int32),
}


def declare(library: ctypes.CDLL) -> None:
    """Gives every function of the library its types. AttributeError: the library lacks one."""
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


def _names(prefix: str) -> dict[int, str]:
    return {value: name for name, value in globals().items() if name.startswith(prefix)}


STATUS_NAMES = {BIRD_OK: "BIRD_OK", **_names("BIRD_ERR_")}
STATE_NAMES = {value: name[len("BIRD_STATE_") :].lower() for value, name in _names("BIRD_STATE_").items()}
NETWORK_HINTS = {name[len("BIRD_NETWORK_") :].lower(): value for value, name in _names("BIRD_NETWORK_").items()}
AREA_NAMES = {value: name[len("BIRD_AREA_") :].lower() for value, name in _names("BIRD_AREA_").items()}
LOG_AREA_NAMES = {value: name[len("BIRD_LOG_AREA_") :].lower() for value, name in _names("BIRD_LOG_AREA_").items()}
CHANNEL_STATE_NAMES = {
    BIRD_CHANNEL_IDLE: "idle",
    BIRD_CHANNEL_AUTHORIZING: "authorizing",
    BIRD_CHANNEL_PENDING: "pending",
    BIRD_CHANNEL_SUBSCRIBED: "subscribed",
    BIRD_CHANNEL_FAILED: "failed",
    BIRD_CHANNEL_UNSUBSCRIBED: "unsubscribed",
}
