"""No part of a password is shown: not by an error, not by the configuration, not after a typing error."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support.warm_program import CliResult, run_gw

from gw_core.errors import InvalidSettingError
from gw_core.front_ends import Database, described

AMBIGUOUS = [
    "postgres://admin:x@s3kr3t@host/db",
    "postgresql://admin:x@s3kr3t@host:5432/db?sslmode=require",
    "postgres://admin:x/s3kr3t@host/db",
    "postgres://admin:12/s3kr3t@host/db",
    "postgres://admin@s3kr3t:x@host/db",
    "postgres://adm/s3kr3t:x@host/db",
]


def gw(*arguments: str, folder: Path, **more: str) -> CliResult:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") and name != "DATABASE_URL"}
    return run_gw(arguments, folder=folder, environment={**kept, **more})


@pytest.mark.parametrize("url", AMBIGUOUS)
def test_a_raw_separator_in_the_password_is_rejected_without_repeating_it(url: str, tmp_path: Path) -> None:
    rejected = gw("list", "-c", url, folder=tmp_path)
    shown = gw("config", "show", "-c", url, folder=tmp_path)

    assert rejected.code == 2
    assert "write @ as %40 and / as %2F" in rejected.err
    assert "raw @ or /" in shown.out
    for text in (rejected.out, rejected.err, shown.out, shown.err):
        assert "s3kr3t" not in text


@pytest.mark.parametrize(
    "url",
    [
        "postgres://admin:x%40y%2Fz@host/db",
        "postgres://admin@host/db",
        "postgres://host/db?user=a@b",
        "postgres://admin:x@h1:1,h2:2/db?options=-c%20a=b@c",
        "postgres:///db",
        "host=h user=a@b",
        "",
    ],
)
def test_other_strings_are_taken_as_they_are(url: str) -> None:
    assert "raw @ or /" not in described(url)


@pytest.mark.parametrize("url", AMBIGUOUS)
def test_no_connection_is_tried(url: str) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        Database(url).connect()

    assert "s3kr3t" not in str(caught.value)
    assert "s3kr3t" not in repr(Database(url))
    assert "s3kr3t" not in described(url)


@pytest.mark.parametrize(
    "command", ["list", "show", "retry", "health", "run", "tasks", "cron list", "config show", ""], ids=str
)
@pytest.mark.parametrize("url", ["postgres://u:s3kr3t@h/x", "embedded://u:s3kr3t@h/x", "host=h password=s3kr3t"])
def test_an_address_in_the_wrong_place_is_not_repeated(command: str, url: str, tmp_path: Path) -> None:
    ended = gw(*command.split(), url, folder=tmp_path)

    assert ended.code == 2
    assert "s3kr3t" not in ended.out + ended.err


def test_an_embedded_server_with_a_user_is_rejected_without_repeating_it(tmp_path: Path) -> None:
    url = "embedded://u:s3kr3t@h/x"
    ended = gw("list", "-c", url, folder=tmp_path)
    shown = gw("config", "show", "-c", url, folder=tmp_path)

    assert "names a host" in ended.err
    assert "s3kr3t" not in ended.out + ended.err + shown.out + shown.err


def test_a_certificate_file_that_is_missing_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak_tls() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, suppress(OSError):
                    client.recv(8)
                    client.sendall(b"S")
                    client.recv(1)

        threading.Thread(target=speak_tls, daemon=True).start()
        where = f"host=127.0.0.1 port={server.getsockname()[1]} sslmode=verify-full sslrootcert=/nowhere/root.crt"
        ended = gw("list", "-c", where, folder=tmp_path)

    assert ended.code == 2, ended.err
    assert 'root certificate file "/nowhere/root.crt" does not exist' in ended.err


@pytest.mark.parametrize(
    "where",
    ["host=127.0.0.1 sslmode=wat", "service=nowhere", "host=127.0.0.1 port=99999"],
)
def test_what_libpq_cannot_use_is_a_mistake_in_the_settings(where: str, tmp_path: Path) -> None:
    ended = gw("list", "-c", where, folder=tmp_path)

    assert ended.code == 2, ended.err
    assert "the connection's settings cannot be used" in ended.err
