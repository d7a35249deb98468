"""`gw tui`: the operators' console."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, project, stderr
from gw_cli.arguments import one_of
from gw_cli.command import command
from gw_cli.commands.workers import recovery_settings
from gw_cli.connect import open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration, table
from gw_cli.settings.file_tables import SCREENS
from gw_cli.settings.resolve import is_database_named
from gw_cli.settings.used_connections import state_folder
from gw_cli.sharding import run_on_each, shards_of
from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from gw_core import CronItem
    from gw_tui.data.source import DataSource
    from gw_tui.rules.options import Options
    from gw_tui.rules.preferences import SavedView

PLAIN_TERMINALS: Final = ("", "dumb", "unknown")


@command("tui")
def tui(
    configuration: Configuration,
    screen: Annotated[str | None, typer.Option("--screen", metavar="FIRST", help=", ".join(SCREENS))] = None,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", metavar="TEXT", help="First selection of jobs, such as 'state:failed task:mail'"),
    ] = None,
    open_: Annotated[
        str | None,
        typer.Option("--open", metavar="LINK", help="First place: job/4901, jobs/state:failed, queue/mail, view/NAME"),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", metavar="NAME", help="First database of several")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the first screen and exit")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: print JSON with stable keys")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Play the recording of a demo queue; needs no database")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show a read-only console in a local browser; needs the extra serve")
    ] = False,
) -> int:
    """Monitor and manage the queue in the terminal.

    Takes three connections at most. It may be started before the database, and waits for it.
    Without a terminal, it prints what --once does.
    """
    if serve:
        _reject_together("serve", once=once, json=as_json)
        configuration = configuration.derive(table.TUI_READ_ONLY, True)
    chosen = _options(configuration, one_of("--screen", screen, SCREENS), filter_)
    databases = _sources(configuration, demo=demo)
    chosen = _in_context(chosen, one_of("--context", context, list(databases)), databases)
    chosen = replace(chosen, open=_link(open_, chosen))
    if serve and not chosen.is_served:
        return _serve(configuration, chosen)
    reason = None if once or as_json or chosen.is_served else _without_screen()
    if reason is not None:
        _explain(f"{reason}: this is what --once prints.")
    if once or as_json or reason is not None:
        return print_all(databases if context is None else {context: databases[context]}, as_json=as_json)
    from gw_tui.main import run  # late: it loads Textual

    if not demo:  # a recording takes no actions
        chosen = replace(chosen, action_log=state_folder() / "actions.jsonl")
    return run(databases, chosen)


def _reject_together(option: str, **options: object) -> None:
    for name, given in options.items():
        if given:
            raise InvalidInputError(f"--{name} and --{option} exclude each other; give one of them")


def _serve(configuration: Configuration, options: Options) -> int:
    """Serve this command: each browser starts it again, with the terminal of the browser."""
    from gw_cli.worker_processes import interpreter_options
    from gw_tui.main import check
    from gw_tui.serve import serve

    check(options)
    program = [sys.executable, *interpreter_options(), "-m", "gw_cli", *sys.argv[1:]]
    serve(program, configuration[table.TUI_PORT], announce=lambda url: output.line(f"Serving on {url}"))
    return ExitCode.OK


def _explain(words: str) -> None:
    """Say why there is no screen, where the operator reads it: standard error may be a file, and the reason itself."""
    if sys.stdout.isatty() and not sys.stderr.isatty():
        output.line(words)
    else:
        stderr.note(words)


def print_all(sources: Mapping[str, Callable[[], DataSource]], *, as_json: bool) -> int:
    """Print the overview of each database; one that cannot be reached does not stop the others."""
    if len(sources) == 1:
        return _print_opened(*sources.values(), as_json=as_json)
    return run_on_each({name: partial(_print_opened, opened, as_json=as_json) for name, opened in sources.items()})


def _print_opened(opened: Callable[[], DataSource], *, as_json: bool) -> int:
    return print_overview(opened(), as_json=as_json)


def print_overview(source: DataSource, *, as_json: bool) -> int:
    from gw_tui.print_once import lines_of, read_once, record_of

    try:
        facts = read_once(source)
    finally:
        source.close()
    if as_json:
        output.record(record_of(facts))
    else:
        output.heading()
        for line in lines_of(facts):
            output.line(_in_reach_of(sys.stdout.encoding, line))
    return ExitCode.OK


def _in_reach_of(encoding: str, line: str) -> str:
    """Return the line as this encoding can say it."""
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        from gw_tui.text.symbols import ASCII

        return line.translate(ASCII).encode("ascii", "replace").decode()
    return line


def _link(text: str | None, options: Options) -> str:
    """Return a deep link that leads somewhere; raises `InvalidInputError`."""
    if text is None:
        return ""
    from gw_tui.rules.command_line import parse_link

    try:
        parse_link(text, options)
    except ValueError as error:
        raise InvalidInputError(f"--open {text!r}: {error}") from error
    return text


def _without_screen() -> str | None:
    """Return why no screen can be drawn here, or None."""
    streams = {"standard input": sys.stdin, "standard output": sys.stdout, "standard error": sys.stderr}
    missing = [name for name, stream in streams.items() if not stream.isatty()]
    if missing:
        words = "no terminal to draw on"
        return words if len(missing) > 1 else f"{words}, because {missing[0]} is redirected"
    if os.environ.get("TERM", "") in PLAIN_TERMINALS:
        return f"a terminal of the kind {os.environ.get('TERM') or 'unknown'} is not supported"
    return None


def _options(configuration: Configuration, screen: str | None, wanted: str | None) -> Options:
    from gw_tui.rules.options import Options
    from gw_tui.rules.preferences import Preferences
    from gw_tui.serve import is_served

    ascii_only = configuration[table.TUI_ASCII]
    return Options(
        period=configuration[table.TUI_INTERVAL].total_seconds(),
        environment=configuration[table.TUI_ENV] or "",
        read_only=configuration[table.TUI_READ_ONLY],
        screen=screen or ("jobs" if wanted else "overview"),
        filter=wanted or "",
        theme=configuration[table.TUI_THEME],
        ascii=_knows_ascii_alone() and not is_served() if ascii_only is None else ascii_only,
        colour=not os.environ.get("NO_COLOR") or is_served(),
        is_served=is_served(),
        mouse=configuration[table.TUI_MOUSE],
        pause_unfocused=configuration[table.TUI_BLUR],
        show_payload=configuration[table.TUI_PAYLOAD],
        max_marked=configuration[table.TUI_MAX_MARKED],
        # Who does without payloads on the screen does not want them in a file.
        log_payloads=configuration[table.TUI_LOG_PAYLOADS] if configuration[table.TUI_PAYLOAD] else "none",
        preferences=Preferences(
            keys=configuration[table.TUI_KEYS], views=_views(configuration), path=state_folder() / "console.json"
        ),
    )


def _views(configuration: Configuration) -> Mapping[str, SavedView]:
    from gw_tui.rules.preferences import SavedView

    views = {}
    for name, each in configuration[table.TUI_VIEWS].items():
        try:
            views[name] = SavedView.read(each)
        except ValueError as error:
            raise InvalidInputError(f"{configuration.file}: view {quoted(name)}: sort: {error}") from None
    return views


def _knows_ascii_alone() -> bool:
    is_utf8 = locale.getpreferredencoding(False).lower().replace("-", "") == "utf8"
    return not is_utf8 or os.environ.get("TERM") == "linux"


# -- several databases -----------------------------------------------------------------------------------------------

DEFAULT_CONTEXT: Final = "default"
"""The name of --connection beside the databases of tui.contexts."""


def _sources(configuration: Configuration, *, demo: bool) -> Mapping[str, Callable[[], DataSource]]:
    """Return what opens each database, by name; a single one has no name."""
    if demo:
        from gw_tui.data.recording import ReplaySource

        return {"": ReplaySource}
    return {name: partial(_source, each) for name, each in _contexts(configuration).items()}


def _contexts(configuration: Configuration) -> Mapping[str, Configuration]:
    """Return the configuration of each database: the shards, or --connection, and then those of tui.contexts."""
    shards = shards_of(configuration)
    more = {
        name: configuration.derive(table.CONNECTION, url) for name, url in configuration[table.TUI_CONTEXTS].items()
    }
    if not more or "flag" in (configuration.origin(each).kind for each in (table.CONNECTION, table.SHARDS)):
        return shards or {"": configuration}
    is_named = is_database_named(os.environ) or configuration.origin(table.CONNECTION).kind != "default"
    first = shards or ({DEFAULT_CONTEXT: configuration} if is_named else {})
    if twice := first.keys() & more:
        raise InvalidInputError(
            f"tui.contexts: the name {quoted(min(twice))} is that of another database; choose another"
        )
    return {**first, **more}


def _in_context(options: Options, context: str | None, names: Iterable[str]) -> Options:
    """Return the options for a database; without a choice it is the first one."""
    known = [each for each in names if each]
    return replace(options, context=context or next(iter(known), ""), contexts=tuple(known))


# -- where from ------------------------------------------------------------------------------------------------------


def _source(configuration: Configuration) -> DataSource:
    from gw_core.front_ends import described, find_conninfo
    from gw_tui.data.source import ClientSource
    from gw_tui.rules.options import QueueInfo

    info = QueueInfo(
        where=described(find_conninfo(configuration[table.CONNECTION])),
        schema=configuration[table.SCHEMA],
        is_read_only=configuration[table.TUI_READ_ONLY],
        recovery=recovery_settings(configuration),
    )
    return ClientSource(partial(open_client, configuration), info, _crontab(configuration))


def _crontab(configuration: Configuration) -> Callable[[], Sequence[CronItem]] | None:
    """Return a function that reads the items again; if the crontab is broken by then, the last valid items stay."""
    if project.crontab_file(configuration) is None and not configuration[table.CRON]:
        return None
    latest = project.written_items(configuration)

    def read() -> Sequence[CronItem]:
        nonlocal latest
        with suppress(InvalidInputError):
            latest = project.written_items(configuration)
        return latest

    return read
