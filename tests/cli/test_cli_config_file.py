"""Which file is the configuration file, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gw_cli.settings.config_file import find_config_file
from gw_core.errors import InvalidSettingError


@pytest.fixture
def below(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "some where" / "below"
    folder.mkdir(parents=True)
    return folder


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_nearest_file_upwards_is_taken(below: Path) -> None:
    write(below.parent.parent / "gw.toml", "jobs = 1")
    nearest = write(below.parent / "gw.toml", "jobs = 2")

    found = find_config_file(None, below)

    assert found is not None
    assert (found.path, found.values) == (nearest, {"jobs": 2})


def test_our_table_of_a_pyproject_is_taken(below: Path) -> None:
    path = write(below.parent / "pyproject.toml", '[project]\nname = "x"\n[tool.gw]\njobs = 3\n')

    found = find_config_file(None, below)

    assert found is not None
    assert (found.path, found.values) == (path, {"jobs": 3})


def test_gw_toml_comes_before_pyproject_in_one_folder(below: Path) -> None:
    write(below / "pyproject.toml", "[tool.gw]\njobs = 3\n")
    path = write(below / "gw.toml", "jobs = 4")

    found = find_config_file(None, below)

    assert found is not None
    assert found.path == path


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[project]\nname = "x"', id="that does not mention us"),
        pytest.param('[project]\nname = "gw-user"', id="that mentions us elsewhere"),
        pytest.param("[tool.ruff]\n[other.gw]", id="with other tables"),
    ],
)
def test_a_pyproject_without_our_table_is_passed_over(below: Path, text: str) -> None:
    path = write(below.parent / "gw.toml", "")
    write(below / "pyproject.toml", text)

    found = find_config_file(None, below)

    assert found is not None
    assert found.path == path


def test_a_broken_pyproject_that_does_not_mention_us_is_not_our_business(below: Path) -> None:
    write(below.parent / "gw.toml", "jobs = 1")
    write(below / "pyproject.toml", "= broken")

    assert find_config_file(None, below) is not None


def test_a_given_file_is_taken_whatever_its_name(below: Path) -> None:
    write(below / "gw.toml", "jobs = 1")
    given = write(below / "other.conf", "jobs = 2")

    found = find_config_file(str(given), below)

    assert found is not None
    assert found.values == {"jobs": 2}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("gw.toml", "jobs = ", "is not TOML", id="not TOML"),
        pytest.param("gw.toml", "a = " + "[" * 5000, "is not TOML", id="nested without end"),
        pytest.param("pyproject.toml", "tool.gw = 3", "is not a table", id="not a table"),
    ],
)
def test_a_file_that_cannot_be_understood_is_named(below: Path, name: str, text: str, message: str) -> None:
    path = write(below / name, text)

    with pytest.raises(InvalidSettingError, match=message) as rejected:
        find_config_file(None, below)

    assert str(path) in str(rejected.value)


def test_bytes_that_are_no_text_are_rejected(below: Path) -> None:
    (below / "gw.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(InvalidSettingError, match="is not TOML"):
        find_config_file(None, below)


def test_a_given_file_that_is_missing_is_an_error(below: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"nowhere\.toml' does not exist; check --config"):
        find_config_file(str(below / "nowhere.toml"), below)
