"""Which gw is measured: that of this checkout and, with `--against`, that of another one, such as an earlier one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

THIS: Final = Path(__file__).resolve().parents[1]
_MEASURED: Final = ContextVar("measured", default=THIS)


@contextmanager
def measuring(checkout: Path) -> Iterator[None]:
    """Measure the gw of another checkout in the block, with the Python of its own environment."""
    token = _MEASURED.set(checkout)
    try:
        yield
    finally:
        _MEASURED.reset(token)


def is_this() -> bool:
    """Return whether the gw of this checkout is measured."""
    return _MEASURED.get() == THIS


def python() -> str:
    """Return the interpreter that runs the measured gw."""
    return sys.executable if is_this() else str(_MEASURED.get() / ".venv" / "bin" / "python")


def environment() -> dict[str, str]:
    """Return the variables with which it imports the measured gw, from whatever folder."""
    return {"PYTHONPATH": str(_MEASURED.get())}
