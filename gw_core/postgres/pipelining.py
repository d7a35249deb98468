"""Let the server work on one thing while the next is made ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def overlapped(items: Iterable[T], act: Callable[[T], R], *, cancel: Callable[[], None]) -> Iterator[R]:
    """Act on one item after the other, each on a thread of its own while the next item is being made here.

    Never two at a time. Whatever ends this early, an error or Ctrl-C, calls `cancel` for what is underway and waits for
    its end, so that nobody uses what `act` uses at the same time.
    """
    underway: _Act[T, R] | None = None
    try:
        for item in items:
            if underway is not None:
                yield underway.result()
            underway = _Act(act, item)
        if underway is not None:
            yield underway.result()
    except BaseException:
        if underway is not None and underway.is_running:
            cancel()
            underway.wait()
        raise


class _Act(Generic[T, R]):
    """One call on a thread of its own. The thread writes `_result` or `_error`, which are read after it has ended."""

    def __init__(self, act: Callable[[T], R], item: T) -> None:
        self._result: list[R] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(act, item), name="gw-bulk", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be had, such as when the interpreter is ending
            self._run(act, item)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> R:
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def wait(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self, act: Callable[[T], R], item: T) -> None:
        try:
            self._result.append(act(item))
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
            self._error = error
