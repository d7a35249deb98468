"""What can be typed after `:`, and where a deep link leads: a place, with what to show there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gw_core.front_ends import HISTORY_TERMS, TERMS, suggest
from gw_core.selection import parse
from gw_tui.rules.commands import BY_ID, COMMANDS, SCREEN_BY_ID, ConsoleCommand, Requirement, written
from gw_tui.rules.options import Options
from gw_tui.rules.preferences import SavedView

ONE_OF: Final = {"queue": "queues", "worker": "workers", "task": "tasks"}
"""Words that take a name; the screen puts the cursor on it."""
JOB: Final = "job"
VIEW: Final = "view"
CONTEXT: Final = "context"
THEME: Final = "theme"
NO_NAMES: Final = Options()
SELECTED_BY: Final = {"jobs": TERMS, "history": HISTORY_TERMS}
"""Screens whose filter is a selection."""
QUIT: Final = ("q", "quit")
UNFILTERED: Final = frozenset({"overview"})
"""Screens of which nothing can be named."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A screen with a filter or a name, one job, a saved view, a database, a theme, or a command to run."""

    screen: str = ""
    filter: str = ""
    job: int | None = None
    command: str = ""
    view: SavedView | None = None
    context: str = ""
    theme: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """A line that continues what was typed, the keys that do the same, and what it does."""

    line: str
    keys: str = ""
    help: str = ""


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
        return Destination(view=options.preferences.views[_one_of(VIEW, rest, options.preferences.views, none)])
    if word == CONTEXT:
        return Destination(context=_one_of("database", rest, options.contexts, "the console shows a single one"))
    if word == THEME:
        return Destination(theme=_one_of(THEME, rest, options.themes, "there are none"))
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


def completions(
    text: str, options: Options = NO_NAMES, commands: Iterable[ConsoleCommand] = COMMANDS
) -> Sequence[Completion]:
    """Return lines that continue a text, and after them those whose name or help has each of its words."""
    word, space, rest = text.partition(" ")
    if space and (names := dict(_names(options)).get(word)):
        return [Completion(f"{word} {name}") for name in sorted(names) if name.startswith(rest)]
    if space and word == "jobs":
        return [Completion(f"jobs {each.text}") for each in suggest(rest, len(rest), {})]
    known = list(_lines(options, commands))
    first = sorted((each for each in known if each.line.startswith(text)), key=lambda each: len(each.line) * bool(text))
    others = [
        each for each in known if all(part in f"{each.line} {each.help}".lower() for part in text.lower().split())
    ]
    return list(dict.fromkeys([*first, *others]))


def _names(options: Options) -> Sequence[tuple[str, Collection[str]]]:
    """Return the names that can be chosen, by the word before them."""
    return (VIEW, options.preferences.views), (CONTEXT, options.contexts), (THEME, options.themes)


def _lines(options: Options, commands: Iterable[ConsoleCommand]) -> Iterator[Completion]:
    """Yield the words that a line can begin with."""
    for screen in SCREEN_BY_ID.values():
        yield Completion(screen.id, screen.key, screen.help)
    yield Completion(JOB, "", f"Show one job, such as {JOB} 4901.")
    for word, screen_id in ONE_OF.items():
        yield Completion(word, "", f"Show one of {SCREEN_BY_ID[screen_id].title}, by its name.")
    for word, names in _names(options):
        if names:
            yield Completion(word, "", f"Choose a {word} by its name.")
    for each in commands:
        keys = options.preferences.keys.get(each.id, each.keys)
        if not each.id.startswith("go_") and each.id != "command_line":
            yield Completion(each.id, " ".join(map(written, keys)), f"{each.label}: {each.help}")
