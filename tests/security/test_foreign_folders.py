"""A folder of another user runs no code of theirs, in commands that do not run tasks."""

from __future__ import annotations

import ast
import os
import pwd
from pathlib import Path

import pytest
from support.project_files import project_files
from support.shell import Shell

from gw_cli.settings import table

LOW = pwd.getpwnam("nobody")
ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")

TRAP = """
from pathlib import Path
from gw_core import TaskRegistry, cron, task
Path({ran!r}).touch()
registry = TaskRegistry()

@task
@cron("0 4 * * *")
def trap(payload): pass
"""

ARGUMENTS = {
    "cron parse": (),
    "cron next": (),
    "cron list": (),
    "cron run": ("trap",),
    "cleanup": ("unused-tasks", "--dry-run"),
}
"""Arguments for each command that reads tasks and does not run them."""

READING = sorted((table.TASKS.commands | table.APP.commands) - {"run", "dev"})


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    """A folder with tasks that leave a trace when they are loaded."""
    shell = Shell(tmp_path / "project", database=database_url)
    shell.environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    shell.write("tasks/a.py", TRAP.format(ran=str(shell.folder / "ran")))
    shell.write("shop.py", TRAP.format(ran=str(shell.folder / "ran")))
    return shell


def give_away(*paths: Path) -> None:
    for path in paths:
        os.chown(path, LOW.pw_uid, LOW.pw_gid)


def has_run(shell: Shell) -> bool:
    return (shell.folder / "ran").exists()


# -- tasks --------------------------------------------------------------------------------------------------------


def test_every_command_that_reads_tasks_is_tried() -> None:
    assert sorted(ARGUMENTS) == READING


@as_root
@pytest.mark.parametrize("command", READING)
def test_tasks_of_another_user_are_not_loaded(command: str, shell: Shell) -> None:
    give_away(shell.folder / "tasks" / "a.py")

    ended = shell.gw(*command.split(), *ARGUMENTS[command])

    assert not has_run(shell)
    assert f"tasks/a.py belongs to nobody; to use them anyway, give {table.TASKS.flag}" in ended.err


@as_root
@pytest.mark.parametrize("place", ["tasks", "."])
def test_tasks_in_a_folder_of_another_user_are_not_loaded(place: str, shell: Shell) -> None:
    give_away(shell.folder / place)

    ended = shell.gw("cron", "list", GW_TASKS="tasks")

    assert not has_run(shell)
    assert "Ignoring the tasks in" in ended.err


def test_tasks_that_others_can_write_are_not_loaded(shell: Shell) -> None:
    (shell.folder / "tasks" / "inner").mkdir()
    (shell.folder / "tasks" / "inner").chmod(0o777)

    assert "every user may write to" in shell.gw("cron", "list").err
    assert not has_run(shell)


def test_nothing_is_deleted_for_tasks_that_are_not_loaded(shell: Shell) -> None:
    """What the folder does not declare counts as unused."""
    shell.gw("add", "trap")
    shell.gw("complete", "--all", "--yes")
    (shell.folder / "tasks").chmod(0o777)

    ended = shell.gw("cleanup", "unused-tasks")

    assert (ended.code, ended.out) == (2, "")
    assert "are not loaded, because every user may write to" in ended.err


@as_root
def test_tasks_of_another_user_are_loaded_where_the_option_names_them(shell: Shell) -> None:
    give_away(shell.folder / "tasks" / "a.py")

    assert "trap" in shell.gw("cron", "parse", "--tasks", "tasks").out
    assert has_run(shell)


def test_own_tasks_are_loaded(shell: Shell) -> None:
    assert "trap" in shell.gw("cron", "parse").out


@as_root
@pytest.mark.parametrize("command", READING)
def test_no_module_of_a_foreign_folder_is_imported_for_the_app(command: str, shell: Shell) -> None:
    give_away(shell.folder)

    ended = shell.gw(*command.split(), *ARGUMENTS[command], GW_APP="shop:registry")

    assert not has_run(shell)
    assert f"Not searching {shell.folder} for the app, because {shell.folder} belongs to nobody" in ended.err
    assert ended.code == 8


@as_root
def test_the_app_of_the_option_is_imported_from_here(shell: Shell) -> None:
    give_away(shell.folder)

    assert shell.gw("cron", "parse", "--app", "shop:registry").code == 0
    assert has_run(shell)


# -- programs that gw starts ------------------------------------------------------------------------------------------

KEEPS_THE_FOLDER_OFF = ("'-I'", "'-P'", "*interpreter_options()", "_BOOTSTRAP")
"""Options of Python in front of the program, and a program that sets the import path before it imports anything."""

OTHER_MENTIONS = {"gw_core/contrib/django/management/commands/gw.py": "os.execve, with such a list as its arguments"}


def test_every_python_that_is_started_keeps_the_current_folder_off_its_import_path() -> None:
    files = [path for package in ("gw_core", "gw_cli", "gw_tui") for path in project_files(ROOT / package, "*.py")]
    problems = {str(path.relative_to(ROOT)): _problems(ast.parse(path.read_text("utf-8"))) for path in files}

    assert {file: found for file, found in problems.items() if found} == {
        file: ["not in a list"] for file in OTHER_MENTIONS
    }


def _problems(tree: ast.AST) -> list[str]:
    """Return what is wrong: each mention of the interpreter begins a list of words that keeps the folder off."""
    lists = [node.elts for node in ast.walk(tree) if isinstance(node, ast.List) and _is_interpreter(node.elts[:1])]
    mentions = [node for node in ast.walk(tree) if _is_interpreter([node])]
    unsafe = [words for words in lists if not any(ast.unparse(word).startswith(KEEPS_THE_FOLDER_OFF) for word in words)]
    return [ast.unparse(words[-1]) for words in unsafe] + ["not in a list"] * (len(mentions) - len(lists))


def _is_interpreter(nodes: list[ast.AST] | list[ast.expr]) -> bool:
    named = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "executable"]
    return any(ast.unparse(node) == "sys.executable" for node in named)
