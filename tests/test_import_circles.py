"""No two modules import each other, also not in functions or under `TYPE_CHECKING`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.project_files import project_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gw_core", "gw_cli", "gw_tui")


def modules_of(package: str) -> dict[str, Path]:
    """Return the file of each module."""
    files = project_files(ROOT / package, "*.py")
    return {".".join(each.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): each for each in files}


def imports_of(path: Path, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a file imports, in any scope."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in known else node.module


def in_circles(graph: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that import themselves through others."""
    return {name for name in graph if name in reachable(graph, name)}


def reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return the modules that `start` imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other(package: str) -> None:
    modules = modules_of(package)
    graph = {
        name: {each for each in imports_of(file, modules) if each in modules and each != name}
        for name, file in modules.items()
    }

    assert in_circles(graph) == set()


def test_a_circle_is_found() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c"}
