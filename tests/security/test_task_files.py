"""What executable tasks inherit, and what a task folder that others may write to can bring into the log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shell import Shell, jobs

from gw_core import WorkerSettings
from gw_core.errors import InvalidSettingError
from gw_core.front_ends import load_folder

SHOW = "#!/bin/sh\nenv\n"


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    shell = Shell(tmp_path, database=database_url)
    shell.write("tasks/show.sh", SHOW, mode=0o755)
    shell.gw("add", "show")
    return shell


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    return folder


# -- executables -------------------------------------------------------------------------------------------------------


def test_an_executable_does_not_see_the_database_password(shell: Shell) -> None:
    reported = shell.gw("run", "--once", SECRET="hunter2").err

    assert "PATH=" in reported
    assert "DATABASE_URL=" not in reported
    assert "hunter2" not in reported


def test_an_executable_sees_everything_if_asked_for(shell: Shell, database_url: str) -> None:
    reported = shell.gw("run", "--once", "--executable-env", "all", SECRET="hunter2").err

    assert f"DATABASE_URL={database_url}" in reported
    assert "SECRET=hunter2" in reported


def test_an_executable_sees_what_the_selection_names(shell: Shell, database_url: str) -> None:
    shell.write("gw.toml", 'executable-env = ["WANTED"]\n')
    reported = shell.gw("run", "--once", SECRET="hunter2", WANTED="given").err

    assert jobs(database_url) == []
    assert "DATABASE_URL=" not in reported
    assert "hunter2" not in reported
    for kept in ("WANTED=given", "PATH=", "GRAPHILE_WORKER_JOB_ID="):
        assert kept in reported


def test_the_selection_holds_after_a_file_was_read_again(tasks: Path) -> None:
    program = tasks / "show.sh"
    program.write_text(SHOW)
    program.chmod(0o755)
    before = load_folder(tasks, executable_env=("WANTED",))
    program.write_text(SHOW + "# changed\n")

    assert before.reload().reading.executable_env == ("WANTED",)


@pytest.mark.parametrize("wrong", ["DATABASE_URL", ["a=b"], [""], [1]])
def test_a_selection_that_is_no_list_of_names_is_rejected(wrong: object) -> None:
    with pytest.raises(InvalidSettingError, match="executable_env must be a list of environment variable names"):
        WorkerSettings(executable_env=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", "A B", "A=1", "A,,B"])
def test_a_flag_that_names_no_variables_is_rejected(shell: Shell, wrong: str) -> None:
    ended = shell.gw("run", "--once", f"--executable-env={wrong}")

    assert ended.code == 2
    assert "give names of variables, or all, or minimal" in ended.err


# -- links and rights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("root:x:0:0:hunter2\n", id="no Python"),
        pytest.param("raise ValueError() # hunter2\n", id="that raises"),
    ],
)
def test_a_link_brings_no_line_of_a_file_outside_into_the_log(tasks: Path, text: str) -> None:
    (tasks.parent / "passwords").write_text(text)
    (tasks / "pw.py").symlink_to(tasks.parent / "passwords")

    (error,) = load_folder(tasks).errors

    assert str(tasks / "pw.py") in str(error)
    assert "hunter2" not in str(error)


def test_lines_of_the_folders_own_files_are_shown_also_where_the_folder_is_a_link(tasks: Path) -> None:
    (tasks / "broken.py").write_text("def broken(:\n")
    link = tasks.parent / "link"
    link.symlink_to(tasks)

    (error,) = load_folder(link).errors

    assert "def broken(:" in str(error)


@pytest.mark.parametrize("what", ["tasks", "tasks/hello.py", "tasks/inner"])
def test_what_every_user_may_write_to_is_said(tasks: Path, what: str) -> None:
    (tasks / "inner").mkdir()
    (tasks / "hello.py").write_text("def hello(payload): pass\n")
    assert load_folder(tasks).warnings == ()

    place = tasks.parent / what
    os.chmod(place, place.stat().st_mode | 0o002)

    (warning,) = load_folder(tasks).warnings
    assert warning.startswith(f"Every user of this machine can write to {place}")
