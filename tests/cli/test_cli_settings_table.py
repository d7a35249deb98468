"""One row of the table of settings is an option, a key, a variable, a field and documentation."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.cli_program import every_command
from support.shell import InProcessShell

from gw_cli import settings
from gw_cli.settings.documents import commented_file, json_schema, toml_value
from gw_cli.settings.table import SETTINGS, TUI_KEYS, Setting
from gw_core import WorkerSettings
from gw_core.errors import InvalidSettingError

WORKER_FIELDS_WITHOUT_SETTING = frozenset(
    {
        "claim_limit",
        "claim_bytes",
        "notify_tasks_after",
        "interrupted_delay",
        "expired_lock_interval",
        "lock_renewal_interval",
    }
)
"""Fields of `WorkerSettings` that only programs set."""


@pytest.fixture
def within(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcessShell:
    return InProcessShell(tmp_path, capsys=capsys, monkeypatch=monkeypatch)


SECTIONS = ["Options", "Database", "Tasks", "Concurrency", "Recovery", "Processes", "Probes", "Logging", "Examples"]


def test_every_field_of_worker_settings_has_a_row_or_is_listed_as_internal() -> None:
    rows = {each.field for each in SETTINGS if each.field}

    assert rows | WORKER_FIELDS_WITHOUT_SETTING == {each.name for each in fields(WorkerSettings)}
    assert rows & WORKER_FIELDS_WITHOUT_SETTING == set()


def test_without_any_source_the_settings_of_a_worker_are_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "gw.toml").touch()
    found, usual = settings.load(tmp_path / "gw.toml", environment={}).worker_settings(), WorkerSettings()

    assert found.effective_heartbeat_interval == usual.effective_heartbeat_interval
    assert found.effective_recovery_delay == usual.effective_recovery_delay
    assert found.prefetch == usual.prefetch
    assert found.executable_env == usual.executable_env == ()


def test_every_command_that_a_row_names_exists() -> None:
    known = {name.removeprefix("gw ") for name in every_command()}

    assert {each for setting in SETTINGS for each in setting.commands} - known == set()


def test_the_help_of_run_is_in_sections(within: InProcessShell) -> None:
    help_ = within.gw("run", "--help").out

    assert re.findall(r"^(\w+):$", help_, re.MULTILINE) == SECTIONS


def test_the_help_of_an_option_fits_on_a_line_with_its_default() -> None:
    long = {
        f"{name} {parameter.name}: {parameter.help}"
        for name, command in every_command().items()
        for parameter in command.params
        if not parameter.hidden and len(parameter.help) > 80
    }

    assert long == set()


# -- programs ----------------------------------------------------------------------------------------------------------


def test_a_program_gets_the_settings_of_a_worker_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "gw.toml"
    path.write_text('concurrency = 3\ngrace-period = "5s"\nsweep-threshold = "20s"\n')

    found = settings.load(path, environment={"GW_CONCURRENCY": "4"}).worker_settings()

    assert (found.concurrency, found.grace_period) == (4, timedelta(seconds=5))
    assert found.effective_sweep_interval == timedelta(seconds=5)


def test_a_program_gets_the_messages_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "gw.toml"
    path.write_text("jobs = 3\n")

    with pytest.raises(InvalidSettingError, match=r"gw\.toml: the key 'jobs' is unknown; did you mean concurrency\?"):
        settings.load(path, environment={})


# -- gw.toml -----------------------------------------------------------------------------------------------------------


def test_the_commented_file_sets_what_is_asked_for_and_nothing_else() -> None:
    assert tomllib.loads(commented_file({"connection": "embedded:"})) == {"connection": "embedded:", "tui": {}}


@pytest.mark.parametrize("setting", [each for each in SETTINGS if each.default is not None], ids=lambda each: each.name)
def test_a_default_in_the_commented_file_is_the_default(setting: Setting[object], tmp_path: Path) -> None:
    table, _, key = setting.name.rpartition(".")
    line = f"{key} = {toml_value(setting)}"
    assert f"# {line}" in commented_file({})
    if setting.default == ():
        return  # an empty list is the absence of the setting

    path = tmp_path / "gw.toml"
    path.write_text(f"[{table}]\n{line}" if table else line)

    meant = tmp_path / setting.default if isinstance(setting.default, Path) else setting.default
    assert settings.load(path, environment={})[setting] == meant


def test_the_schema_describes_every_key() -> None:
    top = json_schema()["properties"]
    assert isinstance(top, dict)
    console = top["tui"]["properties"]

    assert {*top, *(f"tui.{key}" for key in console)} - {"tui"} == {each.name for each in SETTINGS}
    assert top["concurrency"]["maximum"] == 10_000
    assert top["log-level"]["enum"] == ["debug", "info", "warning", "error"]


def test_the_schema_is_printed(within: InProcessShell) -> None:
    assert '"gw.toml"' in within.gw("config", "schema").out


# -- gw config show ----------------------------------------------------------------------------------------------------


def test_the_settings_of_one_command_are_shown(within: InProcessShell) -> None:
    lines = within.gw("config", "show", "cron", "run", GW_CRONTAB="mine").out.splitlines()

    assert [line.split("\t")[0] for line in lines[1:]] == [
        "connection",
        "shards",
        "schema",
        "password-command",
        "pg-bin",
        "tasks",
        "app",
        "crontab",
    ]
    assert lines[8].split("\t")[1:] == ["mine", "environment", "GW_CRONTAB"]


def test_a_command_without_settings_is_an_error(within: InProcessShell) -> None:
    assert "COMMAND 'nothing': give one of actions, add, bench," in within.gw("config", "show", "nothing").err


def test_w_is_short_for_watch_as_in_graphile_worker() -> None:
    [watch] = [each for each in every_command()["gw run"].params if "--watch" in each.opts]

    assert "-w" in watch.opts


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("gw run", [each for each in SETTINGS if "." not in each.name and not each.file_only], id="run"),
        pytest.param(
            "gw tui",
            [each for each in SETTINGS if each.name.startswith("tui.") and not each.file_only and each != TUI_KEYS],
            id="tui",
        ),
    ],
)
def test_every_setting_is_an_option_of_its_command(name: str, settings: list[Setting[object]]) -> None:
    found = every_command()[name]

    assert {setting.flag for setting in settings} <= {flag for parameter in found.params for flag in parameter.opts}


# -- wrong types -------------------------------------------------------------------------------------------------------

# Each type of TOML by the name it has in messages, the values, and the types of JSON Schema that allow it.
TYPES = {
    "a text": (['""', '"="'], {"string"}),
    "a boolean": (["true", "false"], {"boolean"}),
    "a whole number": (["0", "-7", "10000000000000000000"], {"integer", "number"}),
    "a number with a fraction": (["1.5", "inf", "nan"], {"number"}),
    "a list": (["[]", "[1]", '[["a"]]', '["a", 1]', '[""]'], {"array"}),
    "a table": (["{}", "{a = 1}", '{"" = ""}'], {"object"}),
    "a date": (["2026-01-31"], set()),
    "a time": (["07:30:00"], set()),
    "a date with a time": (["2026-01-31T07:30:00Z", "2026-01-31T07:30:00"], set()),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.name)
def test_a_value_of_a_wrong_type_is_rejected_with_the_setting_and_both_types(
    setting: Setting[object], kind: str, tmp_path: Path
) -> None:
    values, fitting = TYPES[kind]
    for value in values:
        path = tmp_path / "gw.toml"
        table, _, key = setting.name.rpartition(".")
        path.write_text(f"[{table}]\n{key} = {value}" if table else f"{key} = {value}")
        try:
            settings.load(path, environment={})
        except InvalidSettingError as error:
            message = str(error)
        else:
            assert kind == "a text" or fitting & _types_of(setting), value
            continue
        assert message.startswith(f"{path}: {setting.name}")
        assert re.search(r": (give|write|item|view) ", message), message
        assert kind in message or kind == "a text" or fitting & _types_of(setting), message


def _types_of(setting: Setting[object]) -> set[str]:
    """Return the types that the schema of the file allows for a setting."""
    schemas: Any = setting.kind.schema.get("anyOf", [setting.kind.schema])
    named = [each.get("type", "string") for each in schemas]
    return {name for each in named for name in ([each] if isinstance(each, str) else each)}


@pytest.mark.parametrize("value", ["true", "3", '"dark"', "[1]"])
def test_a_table_of_settings_that_is_none_is_named(value: str, tmp_path: Path) -> None:
    path = tmp_path / "gw.toml"
    path.write_text(f"tui = {value}")

    with pytest.raises(InvalidSettingError, match=r": tui is a .*: write \[tui\]"):
        settings.load(path, environment={})


def test_a_pyproject_file_whose_tools_are_no_table_has_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("tool = 3  # gw")

    assert settings.load(path, environment={})[TUI_KEYS] == {}
