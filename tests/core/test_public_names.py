"""The public modules: each name is in one of them, and is imported on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import Counter

import pytest

import gw_core

MODULES = (
    "gw_core",
    *(f"gw_core.{name}" for name in ("crontab", "embedded", "errors", "events", "operations", "selection", "types")),
)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_can_be_imported(module: str) -> None:
    public = importlib.import_module(module)

    assert [name for name in public.__all__ if getattr(public, name, None) is None] == []


def test_each_public_name_is_in_one_module() -> None:
    names = Counter(name for module in MODULES for name in importlib.import_module(module).__all__)

    assert [name for name, count in names.items() if count > 1] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gw_core' has no attribute 'Nonsense'"):
        _ = gw_core.Nonsense  # type: ignore[attr-defined]


def test_importing_the_public_modules_loads_nothing_else() -> None:
    code = (
        f"import sys, {', '.join(MODULES)}; print(*sorted(each for each in sys.modules if each.startswith('gw_core')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert sorted(done.stdout.split()) == sorted([*MODULES, "gw_core.runtime", "gw_core.runtime.lazy"])
