"""A Sphinx extension: document every public name of a module, and read docstrings as Markdown.

A page contains a fenced block ```` ```{public-names} gw_core ````, whose lines name what is documented elsewhere.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from sphinx.application import Sphinx

BLOCK = re.compile(r"^```\{public-names\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"Example: docs/(.+)\.md")
"""The line of a docstring that names the page with an example."""
MODULES = (
    "gw_core",
    *(f"gw_core.{name}" for name in ("crontab", "embedded", "errors", "events", "operations", "recovery")),
    *(f"gw_core.{name}" for name in ("selection", "testing", "types")),
    *(f"gw_core.contrib.{name}" for name in ("opentelemetry", "sentry", "django")),
)
"""Where users import from."""
MEMBERS = ("   :members:", "   :undoc-members:")
GROUPS = {"Classes": "autoclass", "Functions": "autofunction", "Exceptions": "autoexception", "Values": "autodata"}


def names_of(module: str) -> list[str]:
    """Return the public names of a module in alphabetical order."""
    return sorted(name for name in importlib.import_module(module).__all__ if not name.startswith("_"))


def expand(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace each block with one directive for each name, grouped by kind."""
    source[0] = BLOCK.sub(lambda found: "\n".join(_sections(found[1], set(found[2].split()))), source[0])


def _sections(module: str, elsewhere: set[str]) -> Iterator[str]:
    kinds: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in names_of(module):
        if name not in elsewhere:
            kinds[_group(getattr(importlib.import_module(module), name))].append(name)
    for group, names in kinds.items():
        if names:
            yield f"\n## {module}: {group.lower()}\n"
            yield from _directives(GROUPS[group], module, names)


def _group(value: Any) -> str:
    if inspect.isclass(value):
        return "Exceptions" if issubclass(value, BaseException) else "Classes"
    return "Functions" if inspect.isroutine(value) else "Values"


def _directives(directive: str, module: str, names: Iterable[str]) -> Iterator[str]:
    yield "```{eval-rst}"
    for name in names:
        yield f".. {directive}:: {module}.{name}"
        yield from MEMBERS if directive == "autoclass" else ("   :no-value:",) * (directive == "autodata")
        yield ""
    yield "```"


def docstring_to_rst(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the little Markdown that docstrings use into reStructuredText."""
    if what == "data":
        # Without a docstring of its own, a value shows that of its type.
        lines[:] = lines if _has_own_docstring(obj) else []
    lines[:] = [_line_to_rst(line) for line in lines]


def _has_own_docstring(value: Any) -> bool:
    return getattr(value, "__doc__", None) != getattr(type(value), "__doc__", None)


def _line_to_rst(line: str) -> str:
    if page := EXAMPLE.fullmatch(line.strip()):
        return f"{line[: len(line) - len(line.lstrip())]}Example: :doc:`/{page[1]}`."
    parts = re.split(r"(`+[^`]+`+)", line)
    return "".join(
        f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([*|_\\])", r"\\\1", part) for part in parts
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", expand)
    app.connect("autodoc-process-docstring", docstring_to_rst)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
