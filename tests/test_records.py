"""Anyone can predict what kind of record a class is: the rule of CONTRIBUTING holds for each of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.project_files import project_files

ROOT = Path(__file__).parents[1]

COPIED = {
    "CronItem": "programs derive one schedule from another",
    "JobSpec": "plugins return a changed copy",
    "RecoverySettings": "programs derive settings",
    "Schedule": "programs derive one schedule from another",
    "Selection": "programs derive selections",
    "WorkerSettings": "programs derive settings",
}
"""The dataclasses of the core: what programs construct and copy with `dataclasses.replace`."""

LACKING = {
    "Account": "the embedded server starts in any Python, with the standard library alone",
    "Binaries": "the embedded server starts in any Python, with the standard library alone",
    "WatchdogArguments": "its program imports the standard library alone",
}
"""The dataclasses that need what structs lack."""


def decorated(package: str) -> dict[str, ast.ClassDef]:
    """Return the dataclasses of a package that inherit from no dataclass of another project."""
    found = {}
    for path in project_files(ROOT / package, "*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                found[node.name] = node
    return {name: node for name, node in found.items() if not node.bases or package == "gw_tui"}


def test_a_dataclass_of_the_core_is_a_value_that_programs_copy() -> None:
    named = {name for package in ("gw_core", "gw_cli") for name in decorated(package)}

    assert named - COPIED.keys() - LACKING.keys() == set(), "make it a msgspec.Struct; see CONTRIBUTING"


@pytest.mark.parametrize("name", sorted(COPIED))
def test_a_copied_value_is_public(name: str) -> None:
    surface = (ROOT / "tests" / "core" / "public_surface.txt").read_text("utf-8")

    assert f".{name}" in surface
