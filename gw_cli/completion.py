"""Complete a command line: commands, options, and values from words, files or the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from gw_cli.settings.file_tables import SCREENS
from gw_cli.settings.table import SETTINGS
from gw_core import JobState

FILES: Final = "files"
CLEANUPS: Final = "failed-jobs unused-tasks unused-queues expired-history"

# What completes a value: a kind of name in the database, files, or words.
OF_OPTION: Final = {
    "--state": " ".join(JobState),
    "--task": "tasks",
    "--keep": "tasks",
    "--queue": "queues",
    "--job-key": "keys",
    "--worker": "workers",
    "--job-key-mode": "replace preserve_run_at unsafe_dedupe",
    "--on-error": "stop skip",
    "--format": "jsonl csv",
    "--screen": " ".join(SCREENS),
    **{each.flag: each.kind.completion for each in SETTINGS if each.kind.completion},
}
SELECTION: Final = "[SELECTION]..."
TARGET: Final = "KIND:NAME"
PAUSABLE: Final = "KIND:NAME..."
OF_METAVAR: Final = {
    TARGET: TARGET,
    "SHELL": "bash zsh fish",
    "FILE": FILES,
    "FILE...": FILES,
    "DIR": FILES,
    "FOLDER": FILES,
}
OF_ARGUMENT: Final = {
    "TASK": "tasks",
    "KEY": "keys",
    "WORKER...": "workers",
    "TARGET...": CLEANUPS,
    SELECTION: SELECTION,
    PAUSABLE: PAUSABLE,
    **OF_METAVAR,
}
OF_TERM: Final = {"task": "tasks", "queue": "queues", "worker": "workers", "job_key": "keys"}
"""Where the names come from in a condition, such as `task:mail`."""

OF_TARGET: Final = {"task": "tasks", "queue": "queues", "cron": "cron"}
"""Where the names come from in a target of a pause."""

ANY_FILE: Final = ":"
"""The line that lets the shell complete a file; no word of ours."""

Names = Mapping[str, Callable[[str], Sequence[str]]]
"""For each kind of name, what returns those in the database that begin with a text."""


def completed(root: Any, words: Sequence[str], names: Names) -> Iterator[str]:
    """Yield what the last of the words after `gw` may be, one line each; a description follows a tab."""
    *before, current = words
    command = root
    for word in before:
        if hasattr(command, "list_commands") and word in command.list_commands(None):
            command = command.get_command(None, word)
    if hasattr(command, "list_commands"):
        yield from _described(_commands(command), current)
        return
    flag, equals, start = current.partition("=") if current.startswith("--") else ("", "", current)
    if current.startswith("-") and not equals:
        yield from _described(_flags(command), current)
        return
    values = _values(command, flag or before[-1])
    if values == FILES:
        yield ANY_FILE
    elif values == SELECTION:
        yield from _selections(current, names)
    elif values in (TARGET, PAUSABLE):
        yield from (f"{flag}{equals}{target}" for target in _targets(start, names, is_pause=values == PAUSABLE))
    elif values in names:
        yield from (f"{flag}{equals}{name}" for name in names[values](start))
    else:
        yield from (f"{flag}{equals}{word}" for word in values.split() if word.startswith(start))


def _selections(current: str, names: Names) -> Iterator[str]:
    """Yield the conditions that begin like this, as in the console; names have to begin like the last value."""
    from gw_core.front_ends import suggest

    term, _, values = current.partition(":")
    of = OF_TERM.get(term, "")
    known = {of: names[of](values.rpartition(",")[2])} if of in names else {}
    for each in suggest(current, len(current), known):
        if each.text.startswith(current):
            yield f"{each.text}\t{each.help}".rstrip()


def _targets(start: str, names: Names, *, is_pause: bool) -> Iterator[str]:
    """Yield what can be paused or resumed, or what `--only` may name."""
    kind, colon, name = start.partition(":")
    if not colon:
        kinds = ["task:", "queue:", *(["flag:", "cron:", "all"] if is_pause else [])]
        yield from (each for each in kinds if each.startswith(start))
    elif kind in ("task", "queue", *(["cron"] if is_pause else [])) and OF_TARGET[kind] in names:
        yield from (f"{kind}:{each}" for each in names[OF_TARGET[kind]](name))


def _described(offers: Mapping[str, str], start: str) -> Iterator[str]:
    return (f"{name}\t{words}".rstrip() for name, words in offers.items() if name.startswith(start))


def _commands(group: Any) -> Mapping[str, str]:
    summaries = {entry.name: entry.summary for entry in getattr(group, "entries", ())}
    return {name: summaries.get(name, "") for name in group.list_commands(None)}


def _flags(command: Any) -> Mapping[str, str]:
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    own = {flag: each.help.split(" [default")[0] for each in options for flag in (*each.opts, *each.secondary_opts)}
    return {**own, "--debug": "Print the traceback of an error", "--help": "Show the options"}


def _values(command: Any, flag: str) -> str:
    """Return what completes the value of an option that takes one, and else the first argument."""
    for option in command.params:
        if flag in (*option.opts, *option.secondary_opts) and option.param_type_name == "option" and not option.is_flag:
            return OF_OPTION.get(option.opts[0], OF_METAVAR.get(option.metavar, ""))
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    return OF_ARGUMENT.get(arguments[0].metavar, "") if arguments else ""
