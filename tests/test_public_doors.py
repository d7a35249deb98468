"""Tests use public names where there are any: the figures below only go down."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from support.project_files import project_files

TESTS = Path(__file__).parent
DJANGO = ("django", "django.models", "django.testing", "django.worker")
CONTRIB = {f"gw_core.contrib.{name}" for name in (*DJANGO, "opentelemetry", "sentry")}
PUBLIC = {
    "gw_core",
    *(f"gw_core.{name}" for name in ("embedded", "events", "errors", "crontab", "operations", "front_ends")),
    *(f"gw_core.{name}" for name in ("recovery", "selection", "testing", "types")),
    *CONTRIB,
}
# Why this many remain:
# - The console and the command line have no public names. Most of these imports lead to pure rules: alerts, filters,
#   text, masking, settings. A test of the module takes a millisecond; one through a terminal takes a second.
# - The core has intricate pure rules: claims, recovery, supervision, health.
# - The model and the tests of statements drive the claimer, the settler and the stores one step at a time.
# - A test at a limit, such as `BULK` or a timeout, imports the limit: a copy of its value would test nothing later.
MAX_CORE_IMPORTS = 140
MAX_FRONT_END_IMPORTS = 125
MAX_PRIVATE_ACCESSES = 25
OF_PYTHON = {"_replace", "_asdict", "_fields", "_exit"}


@cache
def nodes() -> list[ast.AST]:
    """Return every node of every test."""
    return [node for path in project_files(TESTS, "*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]


def internal_imports(*packages: str) -> list[str]:
    """Return the internal modules of the packages that tests import, once for each import."""
    imports = [node for node in nodes() if isinstance(node, ast.ImportFrom) and node.level == 0]
    modules = [module for node in imports for module in _modules_of(node)]
    return [module for module in modules if module.split(".")[0] in packages and module not in PUBLIC]


def _modules_of(node: ast.ImportFrom) -> list[str]:
    """Return the module that names are imported from; of a public package also each module taken from it."""
    folder = TESTS.parent.joinpath(*(node.module or "").split("."))
    taken = [name.name for name in node.names if node.module in PUBLIC and (folder / f"{name.name}.py").exists()]
    return [node.module or "", *(f"{node.module}.{name}" for name in taken)]


def private_accesses() -> list[str]:
    """Return the private attributes of other objects that tests touch; a chain of them counts once."""
    found = [node for node in nodes() if isinstance(node, ast.Attribute) and _is_private(node)]
    inner = {id(below) for node in found for below in ast.walk(node.value)}
    return [ast.unparse(node) for node in found if id(node) not in inner]


def _is_private(node: ast.Attribute) -> bool:
    is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in OF_PYTHON and not is_own


def test_tests_import_few_internal_modules_of_the_core() -> None:
    assert len(internal_imports("gw_core")) <= MAX_CORE_IMPORTS


def test_tests_import_few_modules_of_the_front_ends() -> None:
    assert len(internal_imports("gw_cli", "gw_tui")) <= MAX_FRONT_END_IMPORTS


def test_tests_touch_few_private_attributes() -> None:
    assert len(private_accesses()) <= MAX_PRIVATE_ACCESSES, "\n".join(private_accesses())
