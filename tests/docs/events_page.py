"""Write docs/reference/events.md from the program: `python tests/docs/events_page.py`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import gw_core
from gw_core import Event

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "events.md"

HEAD = """# Events

Subscribe with `events.on(JobFailed, listener)`, by name with `events.on("job:failed", listener)`, or to all with `"*"`.
Every event is a frozen value; a listener gets it as its only argument, in the thread that tells.
This page is written by `python tests/docs/events_page.py`.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(_section(kind) for kind in sorted(_kinds(), key=lambda kind: (kind.name, kind.__name__)))


def _kinds() -> list[type[Event]]:
    exported = (getattr(gw_core, name) for name in gw_core.__all__)
    return [each for each in exported if inspect.isclass(each) and issubclass(each, Event) and each is not Event]


def _section(kind: type[Event]) -> str:
    fields = _fields(kind)
    table = ""
    if fields:
        table = "\n| field | type |\n|---|---|\n" + "".join(
            f"| `{name}` | `{shown}` |\n".replace(" | None", " or None") for name, shown in fields
        )
    return f"\n## {kind.__name__} — `{kind.name}`\n\n{_sentences(kind)}\n{table}"


def _sentences(kind: type[Event]) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _fields(kind: type[Event]) -> list[tuple[str, str]]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    definition = tree.body[0]
    assert isinstance(definition, ast.ClassDef)
    return [
        (each.target.id, ast.unparse(each.annotation))
        for each in definition.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id != "name"
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
