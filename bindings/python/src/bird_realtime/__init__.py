"""Bird Realtime for Python: a client on libbirdrealtime, which is loaded when the first client is created.

from bird_realtime import BirdRealtime

with BirdRealtime("your-app-key", region="us1") as bird:
    @bird.subscribe("orders").bind("order-updated")
    def show(event):
        print("order changed:", event.data)

    bird.run_forever()
"""

from .channel import Channel, MemberChannel, PresenceChannel
from .client import BirdRealtime
from .connection import Connection
from .errors import (
    AuthorizationError,
    BirdRealtimeError,
    CalledInHandler,
    Closed,
    ConnectionFailed,
    DecryptionError,
    EdgeError,
    ForkedClient,
    GaveUp,
    IdentityMissing,
    InvalidArgument,
    InvalidState,
    LibraryError,
    MessageLost,
    NotSubscribed,
    NotSupported,
    QueueFull,
    TimedOut,
)
from .events import (
    DecryptionFailed,
    ErrorReported,
    Event,
    Member,
    MemberEvent,
    StateChange,
    SubscriptionFailed,
    SubscriptionSucceeded,
)
from .options import Options
from .statistics import Statistics
from .stream import EventStream

__version__ = "0.1.0"

__all__ = [
    "AuthorizationError",
    "BirdRealtime",
    "BirdRealtimeError",
    "CalledInHandler",
    "Channel",
    "Closed",
    "Connection",
    "ConnectionFailed",
    "DecryptionError",
    "DecryptionFailed",
    "EdgeError",
    "ErrorReported",
    "Event",
    "EventStream",
    "ForkedClient",
    "GaveUp",
    "IdentityMissing",
    "InvalidArgument",
    "InvalidState",
    "LibraryError",
    "Member",
    "MemberChannel",
    "MemberEvent",
    "MessageLost",
    "NotSubscribed",
    "NotSupported",
    "Options",
    "PresenceChannel",
    "QueueFull",
    "StateChange",
    "Statistics",
    "SubscriptionFailed",
    "SubscriptionSucceeded",
    "TimedOut",
]
