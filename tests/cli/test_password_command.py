"""`--password-command` provides the password of each new connection."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.postgres_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.run("create role shop login superuser password 'open sesame'")
        hba = server.folder / "data" / "pg_hba.conf"
        hba.write_text("host all postgres all trust\nhost all shop all scram-sha-256\n")
        server.run("select pg_reload_conf()")
        yield server


def gw(server: Server, command: str, *words: str) -> subprocess.CompletedProcess[str]:
    url = f"postgres://shop@127.0.0.1:{server.port}/postgres"
    arguments = [sys.executable, "-m", "gw_cli", *words, "--connection", url, "--password-command", command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_is_asked_for_the_password(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n")

    assert gw(server, f"cat '{tmp_path / 'secret'}'", "migrate").returncode == 0
    assert gw(server, f"cat '{tmp_path / 'secret'}'", "list").returncode == 0


def test_a_command_that_fails_is_named(server: Server) -> None:
    ended = gw(server, "false", "list")

    assert ended.returncode == 3
    assert "the password could not be read: Command '['false']' returned non-zero exit status 1" in ended.stderr


def test_a_wrong_password_ends_the_command(server: Server) -> None:
    assert gw(server, "echo wrong", "list").returncode == 4
