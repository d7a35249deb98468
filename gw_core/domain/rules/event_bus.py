"""Deliver events to their listeners."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Final, TypeVar, overload

import msgspec

from gw_core.domain.errors import InvalidSettingError


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of all events. `name` is Graphile Worker's name for the event, if it has one.

    Example: docs/api/gw_core.md
    """

    name: ClassVar[str] = "event"


class WorkerEvent(Event, frozen=True):
    """Base class of the events of one worker."""

    worker_id: str


MODULES: Final = ("gw_core.domain.rules.events", "gw_core.domain.cron.schedule_events")
"""Where events are defined."""

NODE_EVENTS_HERE: Final[Mapping[str, str]] = {
    "forcefulShutdown": "gracefulShutdown",
    "pool:fatalError": "pool:listen:error",
    "pool:forcefulShutdown:complete": "pool:release",
    "pool:forcefulShutdown:error": "worker:fatalError",
    "pool:gracefulShutdown:complete": "pool:release",
    "pool:gracefulShutdown:error": "worker:fatalError",
    "pool:gracefulShutdown:workerError": "pool:forcefulShutdown",
    "pool:listen:connecting": "pool:listen:success",
    "pool:listen:release": "pool:release",
    "resetLocked:failure": "maintenance:error",
    "resetLocked:started": "resetLocked:success",
    "worker:getJob:error": "pool:listen:error",
    "worker:getJob:start": "pool:getJobs:complete",
    "worker:release": "worker:stop",
}
"""Graphile Worker's events (Node.js) that gw does not emit, each with the nearest one that it does."""

E = TypeVar("E", bound=Event)
Listener = Callable[[E], object]
_AnyListener = Callable[[Any], object]


class Events:
    """Delivers events to their listeners.

    Listeners run on the thread that emits the event, in the order of their subscription. If one raises an error,
    `on_error` is called and the others still run. Subscribing is safe from any thread.

    Example: docs/api/index.md
    """

    def __init__(self, on_error: Callable[[Event, Exception], None] | None = None) -> None:
        self._listeners: dict[str, tuple[_AnyListener, ...]] = {}
        self._wanted: set[type[Event]] = set()
        self.wants: Callable[[type[Event]], bool] = self._wanted.__contains__
        """True when a listener exists; a busy path checks before it builds the event. Every job asks three times, so
        this is a method of the set and not one of ours, which would take three times as long."""
        self.on_error = on_error

    @overload
    def on(self, kind: type[E], listener: Listener[E]) -> Callable[[], None]: ...

    @overload
    def on(self, kind: type[E]) -> Callable[[Listener[E]], Listener[E]]: ...

    @overload
    def on(self, kind: str, listener: Listener[Any]) -> Callable[[], None]: ...

    @overload
    def on(self, kind: str) -> Callable[[Listener[Any]], Listener[Any]]: ...

    def on(self, kind: type[Event] | str, listener: Listener[Any] | None = None) -> Any:
        """Call `listener` for every event of `kind`: a class, its name such as "job:failed", or "*" for all.

        Returns a function that ends the subscription. Without a listener, `on` is a decorator, which returns the
        listener. Raises `ValueError` for an unknown event name.
        """
        if listener is None:

            def decorate(function: Listener[Any]) -> Listener[Any]:
                self.on(kind, function)
                return function

            return decorate
        if inspect.iscoroutinefunction(inspect.unwrap(listener)):
            raise InvalidSettingError(
                f"the listener {getattr(listener, '__name__', listener)} must not be async: listeners run in the "
                "thread that emits the event; write it with def, and hand over to a loop with run_coroutine_threadsafe"
            )
        name = kind if isinstance(kind, str) else kind.name
        if not isinstance(kind, str):
            EVENT_TYPES.setdefault(name, kind)
        is_known = name in EVENT_TYPES  # imports every event for an unknown name, which "*" is
        if name != "*" and not is_known:
            raise ValueError(_unknown(name))
        names = tuple(EVENT_TYPES) if name == "*" else (name,)
        for each in names:
            self._listeners[each] = (*self._listeners.get(each, ()), listener)
            self._wanted.add(EVENT_TYPES[each])
        return lambda: self._unsubscribe(names, listener)

    def emit(self, event: Event) -> None:
        """Call the listeners of an event."""
        for listener in self._listeners.get(event.name, ()):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - user code: report it and continue
                if self.on_error is not None:
                    self.on_error(event, error)

    def _unsubscribe(self, names: Iterable[str], listener: _AnyListener) -> None:
        for name in names:
            self._listeners[name] = tuple(each for each in self._listeners[name] if each is not listener)
            if not self._listeners[name]:
                self._wanted.discard(EVENT_TYPES[name])


def _unknown(name: str) -> str:
    if name in NODE_EVENTS_HERE:
        return f"gw does not emit {name!r}; the nearest event is {NODE_EVENTS_HERE[name]!r}"
    return f"unknown event {name!r}; use one of {', '.join(sorted(EVENT_TYPES))}"


def _all_event_types(root: type[Event]) -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {}
    for kind in root.__subclasses__():
        if "name" in vars(kind):  # not a base class
            found[kind.name] = kind
        found.update(_all_event_types(kind))
    return found


class _EventTypes(dict[str, type[Event]]):
    """Event classes by name; for an unknown name, the modules that define events are imported and searched."""

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            for module in MODULES:
                import_module(module)
            self.update(_all_event_types(Event))
        return super().__contains__(name)


EVENT_TYPES = _EventTypes()
"""Every event class by its name."""
