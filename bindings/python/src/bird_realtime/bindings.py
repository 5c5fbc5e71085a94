"""Handlers by event name: what channels, the client and its connection have in common."""

from __future__ import annotations

import threading
from typing import Any, Callable, TypeVar, overload

from ._native import text_argument
from .errors import InvalidArgument

Handler = Callable[[Any], object]
HandlerT = TypeVar("HandlerT", bound=Handler)
Self = TypeVar("Self", bound="Bindable")


class Binding:
    """One handler. Cleared when unbound, so that a delivery that has begun does not call it any more."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler: Handler | None = handler


Bindings = tuple[Binding, ...]


class Bindable:
    """Something that handlers can be bound to. Safe from any thread: delivery reads tuples that are replaced, never
    changed."""

    def __init__(self, lock: threading.RLock, check_process: Callable[[], None]) -> None:
        self._lock = lock
        # Comes before each use of the lock: in a forked child it may be held for ever by a thread that is not there.
        self._check_process = check_process
        self._named: dict[str, Bindings] = {}
        self._global: Bindings = ()

    @overload
    def bind(self: Self, event: str, handler: Handler) -> Self: ...

    @overload
    def bind(self, event: str) -> Callable[[HandlerT], HandlerT]: ...

    def bind(self: Self, event: str, handler: Handler | None = None) -> Self | Callable[[HandlerT], HandlerT]:
        """Calls the handler with each event of this name. Without a handler it is a decorator."""
        if handler is not None:
            self._add(event, handler)
            return self

        def decorate(function: HandlerT) -> HandlerT:
            self._add(event, function)
            return function

        return decorate

    def unbind(self: Self, event: str | None = None, handler: Handler | None = None) -> Self:
        """Removes this handler of this event; without a handler all of the event; without an event from every event,
        the global handlers included. At most one call that is already running ends after it."""
        self._check_process()
        with self._lock:
            names = list(self._named) if event is None else [self._own_name(event)]
            for name in names:
                kept = _without(self._named.pop(name, ()), handler)
                if kept:
                    self._named[name] = kept
            if event is None:
                self._global = _without(self._global, handler)
            self._changed()
        return self

    def _add(self, event: str, handler: Handler) -> Binding:
        self._check_process()
        self._prepare(event)
        event = self._own_name(event)
        binding = _binding(handler)
        with self._lock:
            self._named[event] = (*self._named.get(event, ()), binding)
            self._changed()
        return binding

    def _add_global(self, handler: Handler) -> Binding:
        self._check_process()
        binding = _binding(handler)
        with self._lock:
            self._global = (*self._global, binding)
            self._changed()
        return binding

    def _remove_global(self, binding: Binding) -> None:
        with self._lock:
            binding.handler = None
            self._global = tuple(each for each in self._global if each is not binding)
            self._changed()

    def _prepare(self, event: str) -> None:
        """Refuses an event that cannot be bound."""
        text_argument(event, "event")

    def _own_name(self, event: str) -> str:
        """The name by which the event's handlers are found."""
        return event

    def _changed(self) -> None:
        """The bindings have changed; the lock is held."""


class GloballyBindable(Bindable):
    """One with application events of any name."""

    @overload
    def bind_global(self: Self, handler: Handler) -> Self: ...

    @overload
    def bind_global(self) -> Callable[[HandlerT], HandlerT]: ...

    def bind_global(self: Self, handler: Handler | None = None) -> Self | Callable[[HandlerT], HandlerT]:
        """Calls the handler with every application event. Without a handler it is a decorator."""
        if handler is not None:
            self._add_global(handler)
            return self

        def decorate(function: HandlerT) -> HandlerT:
            self._add_global(function)
            return function

        return decorate

    def unbind_global(self: Self, handler: Handler | None = None) -> Self:
        """Removes this global handler, or all of them."""
        self._check_process()
        with self._lock:
            self._global = _without(self._global, handler)
            self._changed()
        return self


def _binding(handler: Handler) -> Binding:
    if not callable(handler):
        raise InvalidArgument(f"handler must be callable, not {type(handler).__name__}", field="handler")
    return Binding(handler)


def _without(bindings: Bindings, handler: Handler | None) -> Bindings:
    kept = []
    for binding in bindings:
        # == and not `is`: each access to a method makes a new object
        if handler is None or binding.handler == handler:
            binding.handler = None
        else:
            kept.append(binding)
    return tuple(kept)
