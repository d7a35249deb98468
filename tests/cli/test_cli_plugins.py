"""`gw run --plugin`: plugins by their names, in every worker process, loaded before any job is claimed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shell import Shell, rows

TASK = "def hello(payload):\n    pass\n"
PLUGIN = """
import os
from gw_core import Plugin

class Recorder(Plugin):
    def around_run(self, job, context, run):
        with open("ran", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return run()

recorder = Recorder()

def make():
    return Recorder()

def breaks():
    raise ValueError("no plugin today")

number = 7
"""


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    shell = Shell(tmp_path, database=database_url)
    shell.write("tasks/hello.py", TASK)
    shell.write("watch.py", PLUGIN)
    assert shell.gw("add", "hello").code == 0
    return shell


def attempts(shell: Shell) -> list[int]:
    """The number of attempts of each job."""
    found = rows(shell.environment["DATABASE_URL"], "select attempts from graphile_worker._private_jobs order by id")
    return [attempts for (attempts,) in found]


def runs(shell: Shell) -> list[int]:
    path = shell.folder / "ran"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("name", ["watch:recorder", "watch:Recorder", "watch:make", "watch.recorder"])
def test_an_object_a_class_and_a_function_name_a_plugin(shell: Shell, name: str) -> None:
    ended = shell.gw("run", "--once", "--plugin", name)

    assert (ended.code, len(runs(shell)), attempts(shell)) == (0, 1, [])


def test_the_option_is_repeatable(shell: Shell) -> None:
    assert shell.gw("run", "--once", "--plugin", "watch:recorder", "--plugin", "watch:make").code == 0
    assert len(runs(shell)) == 2


def test_the_file_and_the_environment_name_plugins(shell: Shell) -> None:
    shell.write("gw.toml", 'plugins = ["watch:recorder", "watch:make"]\n')
    assert shell.gw("run", "--once").code == 0
    assert len(runs(shell)) == 2
    assert shell.gw("add", "hello").code == 0
    assert shell.gw("run", "--once", GW_PLUGINS="watch:make").code == 0
    assert len(runs(shell)) == 3


def test_worker_processes_load_the_plugin(shell: Shell) -> None:
    ended = shell.gw("run", "--once", "--processes", "2", "--plugin", "watch:recorder")

    assert (ended.code, len(runs(shell)), attempts(shell)) == (0, 1, [])
    assert os.getpid() not in runs(shell)


@pytest.mark.parametrize("processes", [(), ("--processes", "2")], ids=["one process", "two processes"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("watch:missing", "the module watch has no missing; it has recorder"),
        ("nowhere:plugin", "there is no module nowhere"),
        ("watch:breaks", "calling it failed: ValueError: no plugin today"),
        ("watch:number", "it is of type int; name a Plugin"),
        ("watch", "does not name a plugin; write it as package.module:plugin"),
    ],
    ids=["attribute", "module", "factory", "type", "form"],
)
def test_a_plugin_that_does_not_load_ends_the_command(
    shell: Shell, name: str, words: str, processes: tuple[str, ...]
) -> None:
    ended = shell.gw("run", "--once", "--plugin", name, *processes)

    assert ended.code == 8
    assert words in ended.err
    assert attempts(shell) == [0]
