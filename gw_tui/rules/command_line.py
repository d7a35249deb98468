"""What can be typed after `:`, and where a deep link leads: a place, with what to show there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from gw_core.front_ends import HISTORY_TERMS, TERMS, suggest
from gw_core.selection import parse
from gw_tui.rules.commands import BY_ID, SCREEN_BY_ID, Requirement
from gw_tui.rules.options import Options
from gw_tui.rules.table_choice import SavedView

ONE_OF: Final = {"queue": "queues", "worker": "workers", "task": "tasks"}
"""Words that take a name; the screen puts the cursor on it."""
JOB: Final = "job"
VIEW: Final = "view"
CONTEXT: Final = "context"
NO_NAMES: Final = Options()
SELECTED_BY: Final = {"jobs": TERMS, "history": HISTORY_TERMS}
"""Screens whose filter is a selection."""
QUIT: Final = ("q", "quit")
UNFILTERED: Final = frozenset({"overview"})
"""Screens of which nothing can be named."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A screen with a filter or a name, one job, a saved view, a database, or a command to run."""

    screen: str = ""
    filter: str = ""
    job: int | None = None
    command: str = ""
    view: SavedView | None = None
    context: str = ""


def parse_line(text: str, options: Options = NO_NAMES) -> Destination:
    """Return what a line means; raises `ValueError` with the reason."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if word == JOB:
        if not rest.isdecimal():
            raise ValueError(f"give a job id, such as {JOB} 4901")
        return Destination(job=int(rest))
    if word == VIEW:
        none = "gw.toml has none, as tables [[tui.views]]"
        return Destination(view=options.views[_one_of(VIEW, rest, options.views, none)])
    if word == CONTEXT:
        return Destination(context=_one_of("database", rest, options.contexts, "the console shows a single one"))
    if word in ONE_OF:
        return Destination(screen=ONE_OF[word], filter=rest)
    if word in SCREEN_BY_ID and not (rest and word in UNFILTERED):
        return Destination(screen=word, filter=_checked(word, rest))
    command = "quit" if word in QUIT else word
    if rest and (command in BY_ID or word in SCREEN_BY_ID):
        raise ValueError(f"{word} takes no argument{_acts_on(command)}")
    if command in BY_ID:
        return Destination(command=command)
    raise ValueError(f"unknown command {word!r}; give a screen such as jobs, or {JOB} and an id")


def _acts_on(command: str) -> str:
    """Return what a command acts on, where that is less than everything."""
    needs_row = command in BY_ID and BY_ID[command].needs is Requirement.ROW
    return f"; it acts on the selected row, and {JOB} 4901 opens a job" if needs_row else ""


def parse_link(link: str, options: Options = NO_NAMES) -> Destination:
    """Return where a deep link leads: `job/4901`, `jobs/state:failed`, `queue/mail`; raises `ValueError`."""
    place, _, rest = link.partition("/")
    return parse_line(f"{place} {rest}", options)


def _one_of(kind: str, name: str, names: Collection[str], none: str) -> str:
    """Return a name that there is; raises `ValueError` with those there are, or why there are none."""
    if name in names:
        return name
    known = f"{kind}s are {', '.join(names)}" if names else none
    raise ValueError(f"unknown {kind} {name!r}; {known}")


def _checked(screen: str, text: str) -> str:
    """Return the filter of a screen, after a check where it is a selection."""
    if screen in SELECTED_BY:
        parse(text, SELECTED_BY[screen])
    return text


def completions(text: str, options: Options = NO_NAMES) -> Sequence[str]:
    """Return lines that continue a text."""
    word, space, rest = text.partition(" ")
    if space and word in (VIEW, CONTEXT):
        names = options.views if word == VIEW else options.contexts
        return [f"{word} {name}" for name in sorted(names) if name.startswith(rest)]
    if space:
        found = suggest(rest, len(rest), {}) if word == "jobs" else ()
        return [f"jobs {each.text}" for each in found]
    words = (*SCREEN_BY_ID, JOB, VIEW, CONTEXT, *ONE_OF, *(name for name in BY_ID if not name.startswith("go_")))
    return sorted({each for each in words if each.startswith(word)}, key=lambda each: (len(each), each)) if word else ()
