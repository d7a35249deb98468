"""Public modules whose names are imported on first use."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_IMPORT: Final = re.compile(r"^    from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_NAME: Final = re.compile(r"(\w+) as \w+")
_CLASS: Final = re.compile(r"^class (\w+)", re.MULTILINE)


def public_names(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a module, from its own imports under `TYPE_CHECKING`.

    `from MODULE import *` means the classes of a module, which is read and not imported.
    """
    source = Path(file).read_text("utf-8")
    origin = {name: found[1] for found in _IMPORT.finditer(source) for name in _names(found[1], found[2] or found[3])}
    names = sorted(origin)

    def resolve(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(origin[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return resolve, lambda: names, names


def _names(module: str, imported: str) -> list[str]:
    if imported != "*":
        return _NAME.findall(imported)
    return _CLASS.findall(Path(__file__).parents[2].joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8"))
