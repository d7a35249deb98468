"""The public modules: each name is in one of them, and is imported on first use."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import gw_core

CHECKOUT = Path(__file__).parents[2]
MODULES = (
    "gw_core",
    *(f"gw_core.{name}" for name in ("crontab", "embedded", "errors", "events", "operations", "recovery")),
    *(f"gw_core.{name}" for name in ("selection", "types")),
)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_can_be_imported(module: str) -> None:
    public = importlib.import_module(module)

    assert [name for name in public.__all__ if getattr(public, name, None) is None] == []


def faces() -> list[Path]:
    return sorted(path for path in CHECKOUT.glob("gw_core/**/*.py") if "= public_names(" in path.read_text("utf-8"))


def imported(face: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what type checkers see: each name, and the module that it comes from."""
    (block,) = (each for each in face.body if isinstance(each, ast.If))
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        module = str(statement.module)
        for each in statement.names:
            if each.name == "*" or each.asname:
                yield each.name, module


def in_table(face: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what programs import on first use."""
    (block,) = (each for each in face.body if isinstance(each, ast.If))
    (table,) = (each.value for each in ast.walk(block.orelse[0]) if isinstance(each, ast.Constant))
    for line in str(table).split("\n"):
        module, _, names = line.strip().partition(":")
        yield from ((name, module) for name in names.split())


@pytest.mark.parametrize("path", faces(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_programs_and_type_checkers_see_the_same_names(path: Path) -> None:
    face = ast.parse(path.read_text("utf-8"))

    assert sorted(in_table(face)) == sorted(imported(face))


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
