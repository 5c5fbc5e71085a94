"""Who delivers records, when, and how threads wait for what a delivery brings.

At any time at most one thread has the *turn*: it alone empties the queue and runs handlers. Usually that is the
client's dispatcher thread. Without one, or while it is paused for run_forever, each waiting call takes the turn for
short slices.

Ctrl-C: Python runs signal handlers only between its own instructions, and the library's wait is one call. A calling
thread therefore waits in slices of WAIT_SLICE_MS. The dispatcher thread, which signals never interrupt, waits without
limit.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Callable

from ._native import Batch, Native
from .errors import BirdRealtimeError, CalledInHandler, ForkedClient, QueueFull
from .router import Router
from .stream import Buffer

logger = logging.getLogger("bird_realtime")

WAIT_SLICE_MS = 100
POSTED_CALLS_MAX = 1_024
#: a handler that is still running when the interpreter exits is given this long
EXIT_WAIT_S = 2.0

_living: weakref.WeakSet[Delivery] = weakref.WeakSet()
_exit_hook_lock = threading.Lock()
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
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._batch: Batch | None = None
        self._posted: deque[Callable[[], None]] = deque()
        # Its lock is reentrant: a garbage collection, and with it abandon(), can run at any point of any thread.
        self._progress = threading.Condition()
        self._may_run = threading.Event()
        self._may_run.set()
        self._is_ending = False
        self._thread: threading.Thread | None = None
        _living.add(self)
        _register_exit_hook()
        if has_thread:
            self._thread = threading.Thread(target=self._run, name="bird-realtime", daemon=True)
            self._thread.start()

    # ------------------------------------------------------------------------------------------------ waiting ----

    @property
    def is_in_handler(self) -> bool:
        """True on the delivering thread, which runs code of the program only in handlers and authorizers."""
        return self._owner == get_ident()

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
                with self._progress:
                    if not is_done():
                        self._progress.wait(slice_ms / 1000)
        return True

    def post(self, work: Callable[[], None]) -> None:
        """Has the delivering thread do this, as if a record had brought it."""
        if len(self._posted) >= POSTED_CALLS_MAX:
            raise QueueFull("too many calls wait for delivery", retriable=True)
        self._posted.append(work)
        self._native.wake()

    def add_buffer(self, buffer: Buffer) -> None:
        """From now on delivery pauses while this buffer is full."""
        with self._progress:
            self._buffers = (*self._buffers, buffer)

    def remove_buffer(self, buffer: Buffer) -> None:
        with self._progress:
            self._buffers = tuple(each for each in self._buffers if each is not buffer)

    # --------------------------------------------------------------------------------------------- delivering ----

    @contextmanager
    def thread_paused(self) -> Iterator[None]:
        """Keeps the dispatcher thread from delivering, so that the calling thread does."""
        self._may_run.clear()
        self._native.wake()
        try:
            yield
        finally:
            self._may_run.set()

    def _run(self) -> None:
        """The dispatcher thread."""
        while not self._is_ending:
            self._may_run.wait()
            self._turn.acquire()
            self._owner = get_ident()
            while self._may_run.is_set() and not self._is_ending:
                self._deliver_safely(-1)
            while self._is_ending and self._deliver_safely(0):
                pass
            self._release_turn()

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
            self._announce()

    def _deliver_slice(self, timeout_ms: int) -> bool:
        """Takes the turn for one round on the calling thread; False: another thread has it."""
        if not self._turn.acquire(blocking=False):
            return False
        self._owner = get_ident()
        try:
            self._deliver(timeout_ms)
            while self._is_ending and self._deliver(0):
                pass
        finally:
            self._release_turn()
        return True

    def _release_turn(self) -> None:
        if self._is_ending:
            self._destroy()
        self._owner = None
        self._turn.release()
        self._announce()

    def _deliver(self, timeout_ms: int) -> bool:
        """One round: what was posted, then one batch, waiting at most this long for it. False: nothing came."""
        posted = len(self._posted)
        for _ in range(posted):
            self._posted.popleft()()
        if self._batch is None:
            self._batch = self._take(timeout_ms)
        if self._batch is None:
            return posted > 0
        router = self._router()
        if router is not None:
            router.deliver(self._batch.records)
        self._batch.release()
        self._batch = None
        return True

    def _take(self, timeout_ms: int) -> Batch | None:
        if self._native.is_destroyed:
            return None
        if any(buffer.is_full for buffer in self._buffers):
            with self._progress:
                self._progress.wait((WAIT_SLICE_MS if timeout_ms < 0 else min(timeout_ms, WAIT_SLICE_MS)) / 1000)
            return None
        batch = self._native.take()
        if batch is not None or timeout_ms == 0:
            return batch
        return self._native.take() if self._native.wait(timeout_ms) else None

    def _announce(self) -> None:
        with self._progress:
            self._progress.notify_all()

    # ------------------------------------------------------------------------------------------------- ending ----

    def end(self, timeout: float) -> None:
        """Delivers what is left and destroys the native client; from a handler, after it has returned."""
        self._is_ending = True
        self._may_run.set()
        self._native.wake()
        if self.is_in_handler:
            return
        deadline = time.monotonic() + timeout
        while not self._native.is_destroyed and time.monotonic() < deadline:
            if self._thread is not None:
                self._thread.join(deadline - time.monotonic())
            elif not self._deliver_slice(0):
                with self._progress:
                    self._progress.wait(WAIT_SLICE_MS / 1000)
        if not self._native.is_destroyed:
            logger.warning("A handler is still running %s s after close(); the client ends when it returns.", timeout)

    def abandon(self, timeout: float = 0.0) -> None:
        """Ends without delivering: the client was collected, the process was forked, or the interpreter exits."""
        self._router = _no_router
        self._posted.clear()
        self._is_ending = True
        if self._native.is_forked:
            self._destroy()
            return
        self._may_run.set()
        self._native.wake()
        if self._thread is None:
            if self._turn.acquire(blocking=False):
                self._release_turn()
        elif self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _destroy(self) -> None:
        if self._batch is not None:
            self._batch.release()
            self._batch = None
        self._native.destroy()


def _no_router() -> Router | None:
    return None
