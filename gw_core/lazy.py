"""Public modules whose names are imported on first use."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_IMPORT: Final = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_NAME: Final = re.compile(r"(\w+) as \w+")


def public_names(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a module, from the imports in its stub (`.pyi`)."""
    stub = Path(file).with_suffix(".pyi").read_text("utf-8")
    origin = {name: found[1] for found in _IMPORT.finditer(stub) for name in _NAME.findall(found[2] or found[3])}
    names = sorted(origin)

    def resolve(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(origin[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return resolve, lambda: names, names
