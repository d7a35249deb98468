"""A configuration file of another user runs no program, takes no password, and is never used unnoticed."""

from __future__ import annotations

import os
import pwd
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shell import Shell
from support.waiting import wait_until

from gw_cli.settings import config_file

LOW = pwd.getpwnam("nobody")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "project" / "deep"
    folder.mkdir(parents=True)
    shell = Shell(folder)
    shell.environment |= {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return shell


@pytest.fixture
def above(shell: Shell) -> Path:
    return shell.folder.parent


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """What a hostile file names as the database."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def was_called(server: socket.socket) -> bool:
    """Whether a client has connected; every program that could do so has ended."""
    called = bool(select.select([server], [], [], 0)[0])
    if called:
        server.accept()[0].close()
    return called


def complete_until_called(shell: Shell, kind: str, server: socket.socket) -> None:
    """Complete until a client has connected: what asks the database for names ends after some seconds."""

    def calls() -> bool:
        shell.complete(kind, "")
        return bool(select.select([server], [], [], 5)[0])

    wait_until(calls, what="completion to connect")
    server.accept()[0].close()


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o644)
    return path


def a_server_that_leaves_a_trace(folder: Path) -> str:
    (folder / "evil").mkdir()
    for name in ("postgres", "initdb"):
        program = write(folder / "evil" / name, f"#!/bin/sh\ntouch '{folder}/ran'\n")
        program.chmod(0o755)
    return 'connection = "embedded:"\npg-bin = "evil"\n'


# -- whose file it is -------------------------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("name", ["gw.toml", "pyproject.toml"])
def test_a_file_of_another_user_above_runs_no_program_of_theirs(name: str, shell: Shell, above: Path) -> None:
    table = "[tool.gw]\n" if name == "pyproject.toml" else ""
    file = write(above / name, table + a_server_that_leaves_a_trace(above))
    os.chown(file, LOW.pw_uid, LOW.pw_gid)

    ended = shell.gw("list")

    assert not (above / "ran").exists()
    assert f"Ignoring the configuration file {file}, because {file} belongs to nobody; to use it" in ended.err


@as_root
def test_a_file_that_was_named_is_used_and_its_owner_is_said(shell: Shell, above: Path) -> None:
    file = write(above / "gw.toml", a_server_that_leaves_a_trace(above))
    os.chown(file, LOW.pw_uid, LOW.pw_gid)

    ended = shell.gw("list", "--config", "../gw.toml")

    assert (above / "ran").exists()
    assert "Using the configuration file" in ended.err
    assert "as requested, although" in ended.err


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "words"),
    [
        pytest.param(0o646, 0o755, "every user may write to", id="the file by everybody"),
        pytest.param(0o644, 0o757, "every user may write to", id="the folder by everybody"),
        pytest.param(0o644, 0o1777, "every user may write to", id="the folder as /tmp"),
        pytest.param(0o664, 0o755, "other users of a group may write", id="the file by a group"),
        pytest.param(0o644, 0o775, "other users of a group may write", id="the folder by a group"),
    ],
)
def test_a_file_that_others_may_write_is_not_used(
    file_mode: int, folder_mode: int, words: str, above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_file, "is_private_group", lambda _gid, _uid: False)
    file = write(above / "gw.toml", "jobs = 1")
    file.chmod(file_mode)
    above.chmod(folder_mode)
    said: list[str] = []

    assert config_file.find_config_file(None, above / "deep", report=said.append) is None
    assert [words in sentence for sentence in said] == [True]
    assert config_file.find_config_file(str(file), above, report=said.append) is not None
    assert [words in sentence for sentence in said] == [True, True]


def test_the_group_that_belongs_to_the_user_alone_may_write(above: Path) -> None:
    file = write(above / "gw.toml", "jobs = 1")
    file.chmod(0o664)
    name = pwd.getpwuid(os.geteuid()).pw_name

    assert config_file.is_private_group(os.getegid(), os.geteuid()) is (config_file.user_name(os.getegid()) == name)
    assert not config_file.is_private_group(os.getegid(), os.geteuid() + 1)


def test_a_link_is_judged_by_the_file_it_leads_to(above: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    write(tmp_path / "open" / "real.toml", "jobs = 1").chmod(0o646)
    (above / "gw.toml").symlink_to(tmp_path / "open" / "real.toml")

    assert config_file.find_config_file(None, above) is None


def test_nothing_is_said_about_a_pyproject_that_does_not_mention_us(above: Path) -> None:
    write(above / "pyproject.toml", "[project]\nname = 'gw'\n").chmod(0o646)
    said: list[str] = []

    assert config_file.find_config_file(None, above, report=said.append) is None
    assert said == []


# -- how far it is searched -------------------------------------------------------------------------------------------


def test_the_search_ends_at_the_root_of_a_repository(above: Path) -> None:
    write(above.parent / "gw.toml", "jobs = 1")
    deep = above / "deep"

    found = config_file.find_config_file(None, deep)
    assert found is not None
    (above / ".git").mkdir()
    assert config_file.find_config_file(None, deep) is None


def test_the_search_ends_at_the_home_folder(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(above.parent / "gw.toml", "jobs = 1")
    deep = above / "deep"

    found = config_file.find_config_file(None, deep)
    assert found is not None
    monkeypatch.setenv("HOME", str(above))
    assert config_file.find_config_file(None, deep) is None
    write(above / "gw.toml", "jobs = 2")
    assert (config_file.find_config_file(None, deep) or found).values == {"jobs": 2}


# -- completion -------------------------------------------------------------------------------------------------------


def test_completion_connects_to_what_a_file_names_only_when_a_command_has(
    shell: Shell, listening: socket.socket
) -> None:
    host, port = listening.getsockname()
    url = f"postgres://{host}:{port}/x?connect_timeout=2&sslmode=disable"
    shell.write("gw.toml", f'connection = "{url}"\n')

    shell.complete("tasks", "", PGPASSWORD="hunter2")
    shell.gw("config", "show")
    shell.complete("tasks", "", PGPASSWORD="hunter2")
    assert not was_called(listening)

    shell.environment["PGCONNECT_TIMEOUT"] = "2"
    listening.settimeout(30)
    with shell.started("list"):
        listening.accept()[0].close()
    complete_until_called(shell, "tasks", listening)

    shell.write("gw.toml", f'connection = "{url}&user=else"\n')
    shell.complete("queues", "")
    assert not was_called(listening)


def test_completion_connects_to_what_the_environment_names(shell: Shell, listening: socket.socket) -> None:
    host, port = listening.getsockname()
    shell.environment["DATABASE_URL"] = f"postgres://{host}:{port}/x?sslmode=disable"

    complete_until_called(shell, "tasks", listening)
