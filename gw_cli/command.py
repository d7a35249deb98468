"""How a command is declared, found and loaded on first use."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated, Any, Final

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup

from gw_cli.output import Layout
from gw_cli.sanitize import quoted
from gw_cli.settings.typer_options import OptionGroup, with_groups
from gw_core.errors import InvalidInputError

_NEGATED: Final = re.compile(r"-[a-z_]{2,}[.:]")

OPTIONS: Final = "Options"
CONDITIONS: Final = "Conditions"
"""The section of the options that select jobs."""

HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}

Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys", rich_help_panel="Output")]
Table = Annotated[bool, typer.Option("--table", help="Print a table, also into a pipe", rich_help_panel="Output")]
Tsv = Annotated[
    bool,
    typer.Option("--tsv", help="Print tab-separated lines, also on a terminal", rich_help_panel="Output"),
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Print a table that is not cut to the terminal", rich_help_panel="Output")
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="KEY,...", help="Columns, named like the JSON keys", rich_help_panel="Output"),
]
_apps: Final[dict[str, typer.Typer]] = {}
"""The commands loaded so far, by the word after `gw`."""


class CommandInfo(msgspec.Struct, frozen=True):
    """A command as `gw --help` lists it, known without loading it.

    It lives in `gw_cli.commands.NAME`, or in the `module` of another command; that has it, or several below its name.
    """

    name: str
    section: str
    summary: str
    module: str = ""

    def load(self) -> Any:
        """Import the command and return it ready to run."""
        importlib.import_module(f"gw_cli.commands.{self.module or self.name.replace('-', '_')}")
        app = _apps[self.name]
        app.info.help = f"{self.summary}."  # of a group; a command has its docstring
        return typer.main.get_command(app)


def new_app(cls: type[TyperGroup] | None = None, epilog: str | None = None) -> typer.Typer:
    """Return the Typer of `gw`, or of one word after it."""
    return typer.Typer(
        cls=cls or Group,
        epilog=epilog,
        add_completion=False,
        no_args_is_help=False,
        # Plain help needs neither rich nor its tenth of a second.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_OPTIONS,
    )


def command(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that makes a function a command, such as `groups list`; its docstring is the help.

    Its parameters are options, or values made of several, see `with_groups`.
    """
    name, _, below = path.partition(" ")
    app = _apps.setdefault(name, new_app())
    register = app.command(below or name, cls=Command, context_settings=HELP_OPTIONS)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        register(with_groups(path, function))
        return function

    return decorate


class Command(TyperCommand):
    """A command; its help lists the options of settings in sections, after its own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], OPTIONS: [], CONDITIONS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(_section_of(parameter), []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, one per line."""
        from gw_cli.examples import EXAMPLES

        with formatter.section("Examples"):
            for example in EXAMPLES[ctx.command_path]:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `-queue:slow` in a selection is a condition, and not the option `-q`."""
        if any(parameter.name == "selection" for parameter in self.params):
            args = [f" {each}" if _NEGATED.match(each) else each for each in args]
        self._reject_repeated_options(ctx, args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def _reject_repeated_options(self, ctx: Any, args: list[str]) -> None:
        """Raise `InvalidInputError` for an option given twice, of which the last value alone would count.

        Settings may be repeated: an alias of a shell can have a connection that its user overrides.
        """
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in given:
            if _has_one_value(option) and given.count(option) > 1:
                is_condition = _section_of(option) == CONDITIONS
                hint = f"; for one of several values write {option.name}:A,B" if is_condition else ""
                raise InvalidInputError(f"{option.opts[0]} was given more than once{hint}")


def _has_one_value(parameter: Any) -> bool:
    """Return whether a parameter is an option of the command itself that has one value."""
    if parameter.param_type_name == "argument" or parameter.is_flag or parameter.count or parameter.multiple:
        return False
    return _section_of(parameter) in (OPTIONS, CONDITIONS) and parameter.name != "config"


def _section_of(parameter: Any) -> str:
    usual = "Arguments" if parameter.param_type_name == "argument" else OPTIONS
    return getattr(parameter, "rich_help_panel", None) or usual


class Group(TyperGroup):
    """A command with commands below it; without any, it prints its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        parsed: list[str] = super().parse_args(ctx, args or ["--help"])
        return parsed


class CommandRegistry(Group):
    """The commands of `gw`, loaded when they are called; the list in the help comes from their entries."""

    entries: tuple[CommandInfo, ...] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of the help."""
        return [entry.name for entry in self.entries]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load one command, or return None when there is none of that name."""
        return next((entry.load() for entry in self.entries if entry.name == cmd_name), None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command the arguments begin with; raises `InvalidInputError` with the nearest there is."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            close = get_close_matches(args[0], names, n=1)
            hint = f"did you mean gw {close[0]}?" if close else "see gw --help"
            raise InvalidInputError(f"unknown command {quoted(args[0])}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands in sections, without loading any."""
        for title, entries in _sections(self.entries):
            with formatter.section(title):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])


def leaf_commands(command: Any, path: str = "gw") -> Iterator[tuple[str, Any]]:
    """Yield every command that has no subcommands, with the words that call it."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else None
    if names is None:
        yield path, command
        return
    for name in names:
        yield from leaf_commands(command.get_command(None, name), f"{path} {name}")


def _sections(entries: Iterable[CommandInfo]) -> Iterable[tuple[str, list[CommandInfo]]]:
    sections: dict[str, list[CommandInfo]] = {}
    for entry in entries:
        sections.setdefault(entry.section, []).append(entry)
    return sections.items()


# -- options of commands that list -------------------------------------------------------------------------------------


def _layout(*, as_json: bool, as_table: bool, as_tsv: bool, wide: bool, columns: str | None) -> Layout:
    as_table = as_table or (wide and not (as_json or as_tsv))
    chosen = [name for name, is_chosen in (("json", as_json), ("table", as_table), ("tsv", as_tsv)) if is_chosen]
    if len(chosen) > 1 or (wide and not as_table):
        raise InvalidInputError("--json, --tsv and --table or --wide contradict each other; give one of them")
    named = tuple(each.strip() for each in (columns or "").split(",") if each.strip())
    if columns is not None and not named:
        raise InvalidInputError("--columns is empty; give keys such as id,task,run_at")
    return Layout(form=chosen[0] if chosen else "", columns=named, is_wide=wide)


Printed = Annotated[
    Layout,
    OptionGroup({"as_json": Json, "as_table": Table, "as_tsv": Tsv, "wide": Wide, "columns": Columns}, _layout),
]
"""How a command that lists prints its records."""

MAX_ROWS: Final = 100_000
DEFAULT_LIMIT: Final = "50"

After = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Start after the cursor of a previous list")
]


def row_limit(most: int = MAX_ROWS) -> Any:
    """Return the option of the number of rows."""
    return typer.Option("--limit", "-n", metavar="N", help=f"Maximum number of rows, up to {most}")


Timeout = Annotated[str, typer.Option("--timeout", metavar="DURATION", help="Time limit of the search")]


Limit = Annotated[str, row_limit()]
