"""Which file is the configuration file, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.shell import CliResult, InProcessShell


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
