"""Write the generated parts of the reference pages: `python docs/generate.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import surface

import gw_core.events
from gw_cli.command import leaf_commands
from gw_cli.commands import root_command
from gw_cli.examples import EXAMPLES
from gw_cli.exit_codes import ExitCode
from gw_cli.settings.table import OTHER_VARIABLES, SETTINGS, Setting
from gw_core.domain.rules.event_bus import EVENT_TYPES, NODE_EVENTS_HERE

PAGES: Final = Path(__file__).resolve().parent / "reference"
SHARED: Final = ("--connection", "--schema", "--pg-bin", "--config")
REGION: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def generated(page: str) -> str:
    """Return a page with every generated part as the program is now."""
    return REGION.sub(lambda match: f"{match[1]}\n{PARTS[match[2]]()}\n\n{match[3]}", page)


def commands() -> str:
    """Describe every command with its arguments and options, and the options that most of them share once."""
    leaves = list(leaf_commands(root_command()))
    shared = {each.opts[0]: each for _, command in leaves for each in command.params if each.opts[0] in SHARED}
    rows = [(_flags(each), each.help) for each in shared.values()]
    parts = ["## Connection options\n", "Most commands accept these options.\n", *_table(("Option", "Meaning"), rows)]
    return "\n\n".join(("\n".join(parts), *("\n".join(_command(*each)) for each in leaves)))


def settings() -> str:
    """Describe every setting with its default and variables."""
    rows = [(f"`{each.name}`", each.help, _default(each), _variables(each)) for each in SETTINGS]
    return "\n".join(_table(("Setting", "Meaning", "Default", "Environment"), rows))


def variables() -> str:
    """Describe the environment variables that are not settings."""
    rows = [(f"`{name}`", meaning) for name, meaning in OTHER_VARIABLES.items()]
    return "\n".join(_table(("Variable", "Meaning"), rows))


def exit_codes() -> str:
    """Describe every exit code."""
    rows = [(f"{code.value}", f"`{code.name}`", code.meaning) for code in ExitCode]
    return "\n".join(_table(("Code", "Name", "Meaning"), rows))


def events() -> str:
    """Describe every event in the order of their names; those without a class in `gw_core.events` are known by name."""
    "*" in EVENT_TYPES  # noqa: B015 - imports every event
    public = set(gw_core.events.__all__)
    rows = [
        (f"`{each.name}`", f"`{each.__name__}`" if each.__name__ in public else "", _first_paragraph(each))
        for each in EVENT_TYPES.values()
    ]
    return "\n".join(_table(("Name", "Class", "Meaning"), sorted(rows)))


def node_events() -> str:
    """List Graphile Worker's events that gw does not emit, with the nearest one."""
    rows = [(f"`{theirs}`", f"`{ours}`") for theirs, ours in NODE_EVENTS_HERE.items()]
    return "\n".join(_table(("Graphile Worker", "Nearest event of gw"), rows))


PARTS: Final = {
    "commands": commands,
    "settings": settings,
    "variables": variables,
    "exit_codes": exit_codes,
    "events": events,
    "node_events": node_events,
    "python": surface.page,
}


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    own = [each for each in options if each.opts[0] not in SHARED]
    yield f"## {name}\n"
    yield f"    {' '.join([name, *map(_argument, arguments), '[OPTIONS]'])}\n"
    yield "\n\n".join(map(_sentences, command.help.strip().split("\n\n"))) + "\n"
    rows = [(f"`{each.metavar}`", each.help) for each in arguments] + [(_flags(each), _help(each)) for each in own]
    if rows:
        yield from _table(("Option", "Meaning"), rows)
    yield "\n```sh"
    yield from EXAMPLES[name]
    yield "```"
    if len(own) < len(options):
        yield "\nIt also accepts the [connection options](#connection-options)."


def _argument(argument: Any) -> str:
    is_optional = not argument.required and not argument.metavar.startswith("[")
    return f"[{argument.metavar}]" if is_optional else str(argument.metavar)


def _sentences(paragraph: str) -> str:
    if paragraph.startswith(" "):
        return paragraph
    return re.sub(r"(?<=\.) (?=[A-Z])", "\n", _marked(" ".join(paragraph.split())))


def _marked(text: str) -> str:
    """Write the options in the text as code; parts that are code stay."""
    return re.sub(r"(`[^`]*`)|(?<![\w-])--[a-z][a-z-]*", lambda found: found[1] or f"`{found[0]}`", text)


def _flags(option: Any) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(
        f"`{flag}{value if flag.startswith('--') else ''}`" for flag in (*option.opts, *option.secondary_opts)
    )


def _help(option: Any) -> str:
    has_default = isinstance(option.default, str) and option.default
    return f"{option.help} [default: {option.default}]" if has_default else str(option.help)


def _default(setting: Setting[Any]) -> str:
    written = setting.kind.write(setting.default)
    return f"`{written}`" if written else "none"


def _variables(setting: Setting[Any]) -> str:
    return ", ".join(f"`{name}`" for name in setting.variables)


def _first_paragraph(kind: type[Any]) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for row in (header, tuple("---" for _ in header), *rows):
        yield f"| {' | '.join(_marked(cell).replace('|', chr(92) + '|') for cell in row)} |"


def main() -> None:
    """Rewrite the pages that have changed."""
    for path in sorted(PAGES.glob("*.md")):
        page = path.read_text("utf-8")
        if (new := generated(page)) != page:
            path.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
