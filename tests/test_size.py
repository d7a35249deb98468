"""Classes and files of the worker and the console stay small enough to be read in one go."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *(f"gw_core/{name}" for name in ("contrib/django", "execution", "maintenance", "runner", "worker")),
    *("gw_tui", *(f"gw_tui/{name}" for name in ("actions", "data", "dialogs", "rules", "screens", "text", "widgets"))),
)

MAX_ATTRIBUTES = 25
MAX_PARAMETERS = 10
MAX_LINES = 500
"""A longer file gives its reason in its first comment, which begins with `# Long:`."""

MANY_PARAMETERS = {
    "Runner": "its parameters are the options of a user's program, all by name and all with a default except the tasks",
}
"""Classes whose constructors may have more parameters, with the reason."""


def files() -> Iterator[Path]:
    """Yield every module of the packages."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).glob("*.py"))


def classes(module: ast.Module) -> list[ast.ClassDef]:
    """Return every class of a module, nested ones too."""
    return [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]


def attributes(cls: ast.ClassDef) -> set[str]:
    """Return the names that the methods of a class assign to `self`, and the fields in its body."""
    assigned = {
        node.attr
        for node in ast.walk(cls)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return assigned | {
        node.target.id for node in cls.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def parameters(cls: ast.ClassDef) -> int:
    """Return how many parameters the constructor of a class has, beside `self`."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = node.args
            return len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) - 1
    return 0


def test_a_class_has_few_attributes_and_its_constructor_few_parameters() -> None:
    large = {
        f"{file.parent.name}/{file.name}: {cls.name}": (len(attributes(cls)), parameters(cls))
        for file in files()
        for cls in classes(ast.parse(file.read_text("utf-8")))
        if len(attributes(cls)) > MAX_ATTRIBUTES
        or (parameters(cls) > MAX_PARAMETERS and cls.name not in MANY_PARAMETERS)
    }

    assert large == {}


def test_a_class_with_a_reason_still_needs_it() -> None:
    known = {cls.name: cls for file in files() for cls in classes(ast.parse(file.read_text("utf-8")))}

    assert [name for name in MANY_PARAMETERS if parameters(known[name]) <= MAX_PARAMETERS] == []


def test_a_long_file_gives_its_reason() -> None:
    long = {str(file.relative_to(ROOT)): file.read_text("utf-8").splitlines() for file in files()}
    comments = {
        name: next((line for line in lines if line.startswith("#")), "")
        for name, lines in long.items()
        if len(lines) > MAX_LINES
    }

    assert [name for name, comment in comments.items() if not comment.startswith("# Long:")] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_rule_finds_its_files(package: str) -> None:
    assert any(file.parent == ROOT / package for file in files())
