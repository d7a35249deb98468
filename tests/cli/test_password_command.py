"""`--password-command` provides the password of each new connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.cli_program import CliProgram, CliResult
from support.postgres_server import Server
from support.waiting import wait_until

Run = Callable[..., CliResult]


def url_of(server: Server) -> str:
    return f"postgres://shop@127.0.0.1:{server.port}/postgres"


def asks_for_a_password(server: Server) -> bool:
    try:
        psycopg.connect(url_of(server), password="").close()
    except psycopg.OperationalError:
        return True
    return False


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.run("create role shop login superuser password 'open sesame'")
        hba = server.folder / "data" / "pg_hba.conf"
        hba.write_text("host all postgres all trust\nhost all shop all md5\n")
        server.run("select pg_reload_conf()")
        wait_until(lambda: asks_for_a_password(server), what="the server to read pg_hba.conf")
        yield server


@pytest.fixture
def gw(server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the program on the server, with a command for the password."""
    monkeypatch.chdir(tmp_path)
    program = CliProgram(capsys, monkeypatch)
    return lambda command, *words: program(*words, "--connection", url_of(server), "--password-command", command)


def test_the_command_is_asked_for_the_password(gw: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n")

    assert gw(f"cat '{tmp_path / 'secret'}'", "migrate").code == 0
    assert gw(f"cat '{tmp_path / 'secret'}'", "list").code == 0


def test_a_command_that_fails_is_named(gw: Run) -> None:
    ended = gw("false", "list")

    assert ended.code == 3
    assert "the password could not be read: Command '['false']' returned non-zero exit status 1" in ended.err


def test_a_wrong_password_ends_the_command(gw: Run) -> None:
    assert gw("echo wrong", "list").code == 4
