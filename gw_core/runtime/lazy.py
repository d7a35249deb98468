"""Public modules whose names are imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def public_names(module: str, table: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a module.

    Each line of the table has a module and the public names that come from it: `gw_core.domain.job.job: Job JobSpec`.
    A name that is in no line comes from a module with `*`.
    """
    lines = [line.partition(":") for line in table.split("\n")]
    origin = {name: source.strip() for source, _, names in lines for name in names.split() if name != "*"}
    whole = [source.strip() for source, _, names in lines if names.split() == ["*"]]
    public = sorted(origin)

    def resolve(name: str) -> Any:
        # The import system asks for private names, and must load nothing.
        for source in (origin[name],) if name in origin else () if name.startswith("_") else whole:
            if (value := getattr(importlib.import_module(source), name, None)) is not None:
                setattr(sys.modules[module], name, value)
                return value
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return resolve, lambda: public, public
