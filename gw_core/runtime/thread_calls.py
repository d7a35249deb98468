"""Call a function in a thread, and wait for its result elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from gw_core.runtime import forks

T = TypeVar("T")


def started(name: str, call: Callable[[], T]) -> Future[T]:
    """Call the function in a daemon thread of its own, and return the future of its result."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    threading.Thread(target=settle, args=(done, call), name=name, daemon=True).start()
    return done


def settle(future: Future[T], call: Callable[[], T]) -> None:
    """Call the function, and give the future its result or what it raises."""
    began = forks.count
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits for the future
        forks.end_if_child(began)
        future.set_exception(error)
    else:
        forks.end_if_child(began)
        future.set_result(result)
