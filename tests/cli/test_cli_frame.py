"""The frame of the program: quick help, honest manual, exit codes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache

import pytest
from support.cli_program import CliProgram, every_command

import gw_core
import gw_core.errors
from gw_cli import commands
from gw_cli.exit_codes import ExitCode, NothingMatchedError, verdict

HEAVY = ("psycopg", "pydantic", "rich", "textual", "gw_core.postgres", "gw_core.worker", "asyncio", "email")


@cache
def loaded_by(*arguments: str) -> set[str]:
    """The modules a call of the program has loaded in the end."""
    script = (
        "import sys\nfrom gw_cli.main import program\nprogram(sys.argv[1:])\nsys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


# -- quick -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("run", "--help"), ("add", "--help"), ("config", "show", "--help")],
    ids=" ".join,
)
def test_help_loads_neither_driver_nor_drawing(arguments: tuple[str, ...]) -> None:
    assert [name for name in HEAVY if name in loaded_by(*arguments)] == []


def test_the_list_of_commands_is_shown_without_loading_any() -> None:
    assert not [name for name in loaded_by("--help") if re.match(r"gw_cli\.commands\.", name)]


def test_the_version_is_shown_without_the_frame() -> None:
    assert "typer" not in loaded_by("--version")


def test_a_command_does_without_the_conversions_of_the_frame() -> None:
    loaded = loaded_by("add", "hello", "--payload", "{", "--flag", "a", "--json")

    assert "pydantic" not in loaded, "typer 0.29 and later import pydantic; run: make venv"


# -- honest ------------------------------------------------------------------------------------------------------------


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for entry in commands.ENTRIES:
        assert entry.load().help.strip().splitlines()[0] == f"{entry.summary}.", entry.name


def test_a_summary_is_a_short_phrase() -> None:
    for entry in commands.ENTRIES:
        assert len(entry.summary) <= 60, entry.name
        assert entry.summary[0].isupper(), entry.name
        assert not entry.summary.endswith("."), entry.name


def test_every_command_and_option_explains_itself() -> None:
    for name, command in every_command().items():
        for parameter in command.params:
            assert parameter.help or parameter.hidden, f"{name} {parameter.name}"


def calls_in(example: str) -> list[list[str]]:
    """Return the words of each call of the program in a line of a shell; a redirection ends it."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((place for place, word in enumerate(words) if word in ("|", ">", "<")), len(words))
    return [words[:end]]


@pytest.mark.parametrize("name", every_command())
def test_every_command_has_examples_that_are_valid(name: str) -> None:
    path = name.split()
    _, _, examples = help_of(name).partition("Examples:\n")

    assert examples
    for words in (call for line in examples.splitlines() for call in calls_in(line)):
        assert words[: len(path)] == path
        every_command()[name].make_context(name, words[len(path) :])


@cache
def help_of(name: str) -> str:
    command = every_command()[name]
    with command.make_context(name, [], resilient_parsing=True) as context:
        return str(command.get_help(context)) + "\n"


def test_a_default_is_shown_once() -> None:
    for name in every_command():
        for option in re.split(r"\n  (?=-)", help_of(name)):
            assert option.count("[default") <= 1, option


@pytest.mark.parametrize("group", ["", "cron", "config"])
def test_a_group_alone_prints_its_help(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gw, words = CliProgram(capsys, monkeypatch), group.split()

    assert gw(*words) == gw(*words, "--help") == gw("help", *words)
    assert gw(*words).out.startswith("Usage: gw")


def test_one_letter_has_one_meaning() -> None:
    meanings: dict[str, set[str]] = {}
    for command in every_command().values():
        for option in command.params:
            for letter in (each for each in getattr(option, "opts", ()) if re.fullmatch("-[a-zA-Z]", each)):
                meanings.setdefault(letter, set()).add(option.opts[0])

    # -n is the number of rows, runs or jobs.
    assert [letter for letter, flags in meanings.items() if len(flags) > 1] == ["-n"]


# -- exit codes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(gw_core.errors.InvalidJobError("x"), 2, id="a job that breaks a rule"),
        pytest.param(gw_core.errors.InvalidSettingError("x"), 2, id="a setting out of range"),
        pytest.param(gw_core.errors.CrontabError("x"), 2, id="a crontab"),
        pytest.param(gw_core.front_ends.NoConnectionError("x"), 2, id="no connection given"),
        pytest.param(gw_core.errors.DatabaseUnavailableError("x"), 3, id="a server that is away"),
        pytest.param(gw_core.errors.TransientDatabaseError("x"), 3, id="a deadlock"),
        pytest.param(gw_core.front_ends.EmbeddedError("x"), 3, id="an embedded server that does not start"),
        pytest.param(gw_core.front_ends.AuthenticationError("x"), 4, id="a wrong password"),
        pytest.param(gw_core.errors.PermissionDeniedError("x"), 4, id="a right that lacks"),
        pytest.param(gw_core.errors.SchemaMissingError("x"), 5, id="a schema that is missing"),
        pytest.param(gw_core.front_ends.SchemaTooOldError("x"), 5, id="a schema that is too old"),
        pytest.param(NothingMatchedError("x"), 6, id="nothing matched"),
        pytest.param(gw_core.front_ends.TaskLoadError("x"), 8, id="tasks that cannot be loaded"),
        pytest.param(gw_core.front_ends.SchemaTooNewError("x"), 57, id="a schema that is too new"),
        pytest.param(gw_core.front_ends.LockedJobsError("x"), 1, id="another error of ours"),
        pytest.param(KeyboardInterrupt(), 130, id="an interrupt"),
        pytest.param(RuntimeError("x"), 1, id="a fault of ours"),
    ],
)
def test_an_error_decides_the_exit_code(error: BaseException, code: int) -> None:
    assert verdict(error) == code


def test_exit_codes_are_distinct_and_explained() -> None:
    assert len({code.value for code in ExitCode}) == len(ExitCode)
    assert all(code.meaning.endswith(".") for code in ExitCode)
