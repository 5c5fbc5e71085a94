"""Who delivers records, when, and how threads wait for what a delivery brings.

At any time at most one thread has the *turn*: it alone empties the queue and runs handlers. Usually that is the
client's dispatcher thread. Without one, or while it is paused for run_forever, each waiting call takes the turn for
short slices.

A signal handler may come at any point of a thread that has the turn. While that one only rests, in the library's wait,
nothing is half done: the handler can deliver, wait and end the client as if it had been called by nobody. Everywhere
else the turn counts as a handler that is running (is_in_handler).

Ctrl-C: Python runs signal handlers only between its own instructions, and the library's wait is one call. A calling
thread therefore waits in slices of WAIT_SLICE_MS. The dispatcher thread, which signals never interrupt, waits without
limit.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from threading import get_ident
from typing import Callable

from . import logs
from ._native import Native
from ._records import Records
from ._signal import Signal, is_owned
from .errors import BirdRealtimeError, CalledInHandler, ForkedClient, QueueFull
from .router import Router
from .stream import Buffer

logger = logs.package

WAIT_SLICE_MS = 100
POSTED_CALLS_MAX = 1_024
#: a handler that is still running when the interpreter exits is given this long
EXIT_WAIT_S = 2.0

_living: weakref.WeakSet[Delivery] = weakref.WeakSet()
_exit_hook_lock = threading.RLock()  # reentrant: a signal handler may create a client, too
_has_exit_hook = False


def _end_all() -> None:
    """At interpreter exit: no thread of ours may still run Python code when the interpreter is taken down."""
    for delivery in list(_living):
        delivery.abandon(EXIT_WAIT_S)


def _register_exit_hook() -> None:
    global _has_exit_hook
    with _exit_hook_lock:
        if not _has_exit_hook:
            atexit.register(_end_all)
            _has_exit_hook = True


class Delivery:
    """The turn of one client. It refers to the client's tables weakly, so that an abandoned client can be collected."""

    def __init__(self, native: Native, router: Router, has_thread: bool) -> None:
        self._native = native
        self._router: Callable[[], Router | None] = weakref.ref(router)
        self._buffers: tuple[Buffer, ...] = ()
        self._buffers_lock = threading.RLock()
        # Reentrant for signal handlers, and because a thread can ask whether it has it by giving it back.
        self._turn = threading.RLock()
        #: the thread that has the turn, unless it rests
        self._handler_thread: int | None = None
        self._posted = router.posted
        self._progress = Signal()
        self._resumed = Signal()
        self._is_paused = False
        self._is_ending = False
        self._thread: threading.Thread | None = None
        _register_exit_hook()
        if has_thread:
            self._thread = threading.Thread(target=self._run, name="bird-realtime", daemon=True)
            self._thread.start()
        # A thread that cannot be started leaves nothing to be ended at exit.
        _living.add(self)

    # ------------------------------------------------------------------------------------------------ waiting ----

    @property
    def is_in_handler(self) -> bool:
        """True inside a handler or an authorizer of this client, and in what interrupts the delivery around them."""
        return self._handler_thread == get_ident()

    @property
    def is_forked(self) -> bool:
        return self._native.is_forked

    def wait_for(self, is_done: Callable[[], bool], timeout: float | None) -> bool:
        """Waits until it is done; False: timeout seconds have passed. Delivers on this thread if no other one does."""
        if self.is_in_handler:
            raise CalledInHandler("this call waits for what is delivered after the handler has returned")
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_done():
            slice_ms = WAIT_SLICE_MS
            if deadline is not None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    # The answer may have come in time and wait behind a handler that took long.
                    self._deliver_slice(0)
                    return is_done()
                slice_ms = min(slice_ms, int(left_s * 1000) + 1)
            if any(buffer.is_full and buffer.consumer == get_ident() for buffer in self._buffers):
                raise QueueFull("an event stream of this thread is full; take its events before waiting for others")
            if not self._deliver_slice(slice_ms):
                self._progress.wait(is_done, slice_ms / 1000)
        return True

    def post(self, work: Callable[[], None]) -> None:
        """Has the delivering thread do this, as if a record had brought it."""
        if len(self._posted) >= POSTED_CALLS_MAX:
            raise QueueFull("too many calls wait for delivery", retriable=True)
        self._posted.append(work)
        self._native.wake()

    def add_buffer(self, buffer: Buffer) -> None:
        """From now on delivery pauses while this buffer is full."""
        with self._buffers_lock:
            self._buffers = (*self._buffers, buffer)

    def remove_buffer(self, buffer: Buffer) -> None:
        with self._buffers_lock:
            self._buffers = tuple(each for each in self._buffers if each is not buffer)

    # --------------------------------------------------------------------------------------------- delivering ----

    def pause_thread(self) -> None:
        """Keeps the dispatcher thread from delivering, so that calling threads do."""
        self._is_paused = True
        self._native.wake()

    def resume_thread(self) -> None:
        self._is_paused = False
        self._resumed.announce()

    def _run(self) -> None:
        """The dispatcher thread."""
        while not self._is_ending:
            with self._turn:
                while not self._is_paused and not self._is_ending:
                    self._deliver_safely(-1)
            self._progress.announce()
            while self._is_paused and not self._is_ending:
                self._resumed.wait(lambda: not self._is_paused or self._is_ending)
        with self._turn:
            while self._deliver_safely(0):
                pass
            self._native.destroy()
        self._progress.announce()

    def _deliver_safely(self, timeout_ms: int) -> bool:
        """Delivers on the dispatcher thread, which no handler may end, not even by sys.exit()."""
        try:
            return self._deliver(timeout_ms)
        except BirdRealtimeError as error:
            # It comes from the queue itself: nothing can be delivered any more.
            if not isinstance(error, ForkedClient):
                logger.error("Delivery has ended: %s", error)
            self._is_ending = True
            return False
        except BaseException as error:
            router = self._router()
            if router is not None:
                router.errors.report(error, "a record")
            return True
        finally:
            self._progress.announce()

    def _deliver_slice(self, timeout_ms: int) -> bool:
        """Takes the turn for one round on the calling thread; False: another thread has it."""
        has_turn = False
        try:
            has_turn = self._turn.acquire(blocking=False)
            if has_turn:
                self._deliver(timeout_ms)
                if self._is_ending:
                    while self._deliver(0):
                        pass
                    self._native.destroy()
        finally:
            # Nothing may come before the release, and has_turn cannot be relied on: Ctrl-C comes anywhere.
            try:
                self._turn.release()
            except RuntimeError:
                has_turn = False
        self._progress.announce()
        if has_turn and self._is_ending and not self._native.is_destroyed:
            # It ends since this thread has looked, and who ended it did not get the turn.
            self._deliver_slice(0)
        return has_turn

    def _deliver(self, timeout_ms: int) -> bool:
        """One round: what was posted and one batch, waiting at most this long for it. False: nothing came."""
        try:
            self._handler_thread = get_ident()
            has_posted = bool(self._posted)
            records = self._take(0 if has_posted else timeout_ms)
            router = self._router()
            if router is not None:
                router.run_posted()
                if records is not None:
                    router.deliver(records)
            if records is not None:
                self._native.release()
            return records is not None or has_posted
        finally:
            self._handler_thread = None

    def _take(self, timeout_ms: int) -> Records | None:
        if self._native.is_destroyed:
            return None
        if self._is_blocked():
            slice_ms = WAIT_SLICE_MS if timeout_ms < 0 else min(timeout_ms, WAIT_SLICE_MS)
            self._rest(lambda: self._progress.wait(lambda: not self._is_blocked(), slice_ms / 1000))
            return None
        records = self._native.take()
        if records is None and timeout_ms != 0:
            self._rest(lambda: self._native.wait(timeout_ms))
            # Asked again: what has interrupted the rest may have ended the client.
            if not self._native.is_destroyed:
                records = self._native.take()
        return records

    def _rest(self, wait: Callable[[], object]) -> None:
        """Waits with the turn while nothing is half done."""
        self._handler_thread = None
        try:
            wait()
        finally:
            self._handler_thread = get_ident()

    def _is_blocked(self) -> bool:
        return any(buffer.is_full for buffer in self._buffers)

    # ------------------------------------------------------------------------------------------------- ending ----

    def end(self, timeout: float | None) -> None:
        """Delivers what is left and destroys the native client. In a handler the one who has the turn does so when the
        handler has returned. Otherwise this waits timeout seconds for that one; None: not at all."""
        self._is_ending = True
        self.resume_thread()
        self._native.wake()
        if self.is_in_handler:
            return
        deadline = time.monotonic() + (timeout or 0)
        while not self._native.is_destroyed:
            left_s = deadline - time.monotonic()
            # Without time too: if nobody has the turn, or this thread rests with it, nobody else will end the client.
            if (self._thread is None or is_owned(self._turn)) and self._deliver_slice(0):
                continue
            if timeout is None:
                return
            if left_s <= 0:
                break
            if self._thread is not None:
                self._thread.join(left_s)
            else:
                self._progress.wait(lambda: self._native.is_destroyed, min(left_s, WAIT_SLICE_MS / 1000))
        if not self._native.is_destroyed:
            logger.warning("A handler is still running %s s after close(); the client ends when it returns.", timeout)

    def abandon(self, timeout: float = 0.0) -> None:
        """Ends without delivering: the client was collected, the process was forked, or the interpreter exits."""
        self._router = _no_router
        self._posted.clear()
        self._is_ending = True
        if self._native.is_forked:
            self._native.destroy()
            return
        self.resume_thread()
        self._native.wake()
        if self._thread is None:
            if not self.is_in_handler:
                self._deliver_slice(0)
        elif self._thread is not threading.current_thread():
            self._thread.join(timeout)


def _no_router() -> Router | None:
    return None
