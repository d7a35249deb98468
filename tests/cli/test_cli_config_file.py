"""Which file is the configuration file, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.shell import CliResult, InProcessShell

from gw_cli.settings import load
from gw_cli.settings.table import CONNECTION, SETTINGS, Setting
from gw_core.errors import InvalidSettingError


@pytest.fixture
def below(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "some where" / "below"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def within(below: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcessShell:
    return InProcessShell(below, capsys=capsys, monkeypatch=monkeypatch)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def shown(within: InProcessShell, *arguments: str) -> CliResult:
    return within.gw("config", "show", "--json", *arguments)


def found(within: InProcessShell, *arguments: str) -> tuple[str, str]:
    """Return the concurrency that the program found, and the file that it comes from."""
    ended = shown(within, *arguments)
    assert (ended.code, ended.err) == (0, "")
    (setting,) = (each for each in json.loads(ended.out) if each["name"] == "concurrency")
    return setting["value"], setting["location"]


def test_the_nearest_file_upwards_is_taken(within: InProcessShell, below: Path) -> None:
    write(below.parent.parent / "gw.toml", "concurrency = 1")
    nearest = write(below.parent / "gw.toml", "concurrency = 2")

    assert found(within) == ("2", str(nearest))


def test_our_table_of_a_pyproject_is_taken(within: InProcessShell, below: Path) -> None:
    path = write(below.parent / "pyproject.toml", '[project]\nname = "x"\n[tool.gw]\nconcurrency = 3\n')

    assert found(within) == ("3", str(path))


def test_gw_toml_comes_before_pyproject_in_one_folder(within: InProcessShell, below: Path) -> None:
    write(below / "pyproject.toml", "[tool.gw]\nconcurrency = 3\n")
    path = write(below / "gw.toml", "concurrency = 4")

    assert found(within) == ("4", str(path))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[project]\nname = "x"', id="that does not mention us"),
        pytest.param('[project]\nname = "gw-user"', id="that mentions us elsewhere"),
        pytest.param("[tool.ruff]\n[other.gw]", id="with other tables"),
        pytest.param("= broken", id="that is broken and does not mention us"),
    ],
)
def test_a_pyproject_without_our_table_is_passed_over(within: InProcessShell, below: Path, text: str) -> None:
    path = write(below.parent / "gw.toml", "concurrency = 1")
    write(below / "pyproject.toml", text)

    assert found(within) == ("1", str(path))


def test_a_given_file_is_taken_whatever_its_name(within: InProcessShell, below: Path) -> None:
    write(below / "gw.toml", "concurrency = 1")
    given = write(below / "other.conf", "concurrency = 2")

    assert found(within, "--config", str(given)) == ("2", str(given))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("gw.toml", b"concurrency = ", "is not TOML", id="not TOML"),
        pytest.param("gw.toml", b"a = " + b"[" * 5000, "is not TOML", id="nested without end"),
        pytest.param("gw.toml", b"\xff\xfe", "is not TOML", id="not text"),
        pytest.param("pyproject.toml", b"tool.gw = 3", "is not a table", id="not a table"),
    ],
)
def test_a_file_that_cannot_be_understood_is_named(
    within: InProcessShell, below: Path, name: str, content: bytes, message: str
) -> None:
    (below / name).write_bytes(content)

    ended = shown(within)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert str(below / name) in ended.err
    assert message in ended.err


def test_a_given_file_that_is_missing_is_an_error(within: InProcessShell, below: Path) -> None:
    ended = shown(within, "--config", str(below / "nowhere.toml"))

    assert ended.code == 2
    assert ended.err.endswith("nowhere.toml' does not exist; check --config\n")


def test_the_error_for_a_missing_file_names_the_variable_that_gave_it(within: InProcessShell, below: Path) -> None:
    ended = within.gw("config", "show", GW_CONFIG=str(below / "nowhere.toml"))

    assert ended.code == 2
    assert ended.err.endswith("nowhere.toml' does not exist; check GW_CONFIG\n")


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
            load(path, environment={})
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
        load(path, environment={})


def test_a_pyproject_file_whose_tools_are_no_table_has_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("tool = 3  # gw")

    assert load(path, environment={}).origin(CONNECTION).kind != "file"
