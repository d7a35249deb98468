"""An embedded server that root starts grants no rights, and only its owner and root may connect."""

from __future__ import annotations

import logging
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from server_users import programs_for, watchdogs_of
from support.accounts import account_for
from support.server_processes import processes_of, server_pid

from gw_core.embedded import account, start_or_attach
from gw_core.embedded.data_folder import DataFolder
from gw_core.embedded.watchdog import write_files
from gw_core.front_ends import EmbeddedError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lose what root owns")
LOW = pwd.getpwnam("nobody")


@pytest.fixture
def theirs(reachable: Path) -> Path:
    """An empty folder of an ordinary user, for which root starts a server."""
    folder = reachable / "theirs"
    folder.mkdir()
    os.chown(folder, LOW.pw_uid, LOW.pw_gid)
    return folder


@pytest.fixture
def secret(reachable: Path) -> Iterator[Path]:
    """A file of root's that must stay as it is."""
    folder = reachable / "secret"
    folder.mkdir(mode=0o700)
    file = folder / "file"
    file.write_text("secret\n")
    file.chmod(0o600)
    yield file
    assert file.read_text() == "secret\n"
    for place in (file, folder):
        assert (place.stat().st_uid, place.stat().st_mode & 0o077) == (0, 0)


def programs(folder: Path, initdb: str) -> Path:
    """Server programs whose initdb is a script; it runs as the owner of the folder, who may do as much at any time."""
    folder.mkdir()
    (folder / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 16.0'\n")
    (folder / "initdb").write_text(f"#!/bin/sh\n{initdb}\n")
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


# -- the folder of another user ---------------------------------------------------------------------------------------


@as_root
def test_root_deletes_and_gives_away_nothing_when_the_new_data_folder_becomes_a_link(
    reachable: Path, theirs: Path, secret: Path
) -> None:
    swap = f"cd '{theirs}' && mv data.new moved && ln -s '{secret.parent}' data.new; exit 1"

    for _ in range(2):
        with pytest.raises(EmbeddedError):
            start_or_attach(f"embedded://{theirs}", pg_bin=_named(reachable, swap))


def _named(reachable: Path, initdb: str) -> Path:
    folder = reachable / "bin"
    return folder if folder.exists() else programs(folder, initdb)


@as_root
def test_root_writes_to_no_file_that_a_link_puts_in_the_place_of_the_settings(
    reachable: Path, theirs: Path, secret: Path
) -> None:
    swap = f"shift; cd \"$1\" && ln -sf '{secret}' postgresql.conf && echo 16 > PG_VERSION"

    with pytest.raises(EmbeddedError):
        start_or_attach(f"embedded://{theirs}", pg_bin=programs(reachable / "bin", swap))


@as_root
@pytest.mark.parametrize("name", ["lock", "users.lock", "server.lock", "watchdog.lock", "server.log", ".gitignore"])
@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["a hard link", "a symbolic link"])
def test_root_neither_gives_away_nor_writes_to_what_a_file_of_the_folder_links_to(
    link: object, name: str, theirs: Path, secret: Path
) -> None:
    (theirs / "lock").touch()
    os.chown(theirs / "lock", LOW.pw_uid, LOW.pw_gid)
    (theirs / name).unlink(missing_ok=True)
    link(secret, theirs / name)  # type: ignore[operator]

    with pytest.raises(EmbeddedError) as caught:
        start_or_attach(f"embedded://{theirs}", pg_bin=programs(theirs.parent / "bin", "exit 1"))
    assert "secret\n" not in str(caught.value)


@as_root
def test_root_uses_no_data_that_a_link_leads_to(theirs: Path, secret: Path) -> None:
    (secret.parent / "PG_VERSION").write_text("15\n")
    (theirs / "lock").touch()
    os.chown(theirs / "lock", LOW.pw_uid, LOW.pw_gid)
    (theirs / "data").symlink_to(secret.parent)

    with pytest.raises(EmbeddedError, match="not a folder but a link"):
        start_or_attach(f"embedded://{theirs}")


@as_root
def test_root_uses_no_data_of_a_third_user(theirs: Path, secret: Path) -> None:
    (theirs / "lock").touch()
    os.chown(theirs / "lock", LOW.pw_uid, LOW.pw_gid)
    (theirs / "data").mkdir()

    with pytest.raises(EmbeddedError, match=r"data' belongs to the user root and its parent folder to the user"):
        start_or_attach(f"embedded://{theirs}")


@as_root
def test_all_that_root_makes_in_somebodys_folder_is_theirs(theirs: Path) -> None:
    place = theirs / "new" / "postgres"

    with start_or_attach(f"embedded://{place}", pg_bin=programs_for(theirs / "data")):
        owners = {path: path.lstat().st_uid for path in (place.parent, place, *place.iterdir())}

    assert set(owners.values()) == {LOW.pw_uid}


@as_root
def test_data_with_a_second_name_are_not_given_away(reachable: Path, secret: Path) -> None:
    data = reachable / "data"
    data.mkdir(mode=0o700)
    os.link(secret, data / "file")
    descriptor = os.open(data, os.O_RDONLY)

    with pytest.raises(EmbeddedError, match="hard link"):
        account.give(descriptor, account_for(data), str(data))
    os.close(descriptor)
    assert data.stat().st_uid == 0


# -- who may connect, and what they may read --------------------------------------------------------------------------

CONNECT = """
import os, sys
import encodings.idna, psycopg, psycopg.rows
os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2]))
try:
    with psycopg.connect(host=sys.argv[1], user="postgres", dbname="postgres") as connection:
        print(connection.execute("select current_user").fetchone()[0])
except psycopg.Error as error:
    print(error)
"""


def connected_as(uid: int, gid: int, folder: Path) -> str:
    """What a process of a user is answered that enters by way of the server's current folder."""
    way = f"/proc/{server_pid(folder / 'data')}/cwd"
    answer = subprocess.run(
        [sys.executable, "-c", CONNECT, way, str(uid), str(gid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return answer.stdout + answer.stderr


@as_root
def test_the_account_that_root_lends_the_server_cannot_connect(folder: Path, pg_bin: Path) -> None:
    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin):
        server = account_for(folder / "data")
        reported = connected_as(server.uid, server.gid, folder)

        assert "eer authentication failed" in reported
        assert connected_as(0, 0, folder) == "postgres\n"


@as_root
def test_the_owner_of_the_folder_can_connect(theirs: Path) -> None:

    with start_or_attach(f"embedded://{theirs / 'postgres'}", pg_bin=programs_for(theirs / "data")):
        assert connected_as(LOW.pw_uid, LOW.pw_gid, theirs / "postgres") == "postgres\n"


@pytest.mark.usefixtures("data")
def test_data_made_when_every_user_was_trusted_are_served_by_the_new_rules(folder: Path) -> None:
    (folder / "data" / "pg_hba.conf").write_text("local all all trust\n")
    for name in ("gw_hba.conf", "gw_ident.conf"):
        (folder / "data" / name).unlink()

    with start_or_attach(f"embedded://{folder}") as server, psycopg.connect(server.conninfo) as connection:
        rules = connection.execute("select type, user_name, auth_method from pg_hba_file_rules").fetchall()

    assert rules == [
        ("local", ["postgres"], "peer"),
        ("local", ["postgres"], "peer"),
        ("local", ["all"], "scram-sha-256"),
    ]


def test_rules_that_were_changed_are_written_again_at_the_next_start(folder: Path) -> None:
    folder.mkdir()
    (folder / "target").write_text("kept")
    (folder / "gw_hba.conf").symlink_to(folder / "target")
    (folder / "gw_hba.conf.new").symlink_to(folder / "target")

    write_files(str(folder), {"gw_hba.conf": "ours"})

    assert ((folder / "gw_hba.conf").read_text(), (folder / "target").read_text()) == ("ours", "kept")


@pytest.mark.usefixtures("data")
def test_a_user_with_a_role_of_ones_own_logs_in_by_password(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}") as server:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("create role app login password 'tiger'")
        theirs = server.conninfo.replace("postgres@", "app@")

        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(theirs)
        psycopg.connect(theirs, password="tiger").close()


@pytest.mark.usefixtures("data")
def test_no_process_of_the_server_knows_the_callers_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "only ours")
    monkeypatch.setenv("PGPASSWORD", "hunter2")

    environments = []
    with start_or_attach(f"embedded://{folder}"):
        for pid in (*processes_of(folder / "data"), *watchdogs_of(folder)):
            with suppress(FileNotFoundError, ProcessLookupError):  # some processes of a server end at any time
                environments.append(Path(f"/proc/{pid}/environ").read_bytes())

    assert len(environments) > 2
    assert not any(b"only ours" in each or b"hunter2" in each for each in environments)


def test_the_minimal_environment_holds_what_programs_need_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("PATH", "TZ", "LC_ALL", "PGDATA", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "given")

    assert account.minimal_environment() == {"PATH": "given", "TZ": "given", "LC_ALL": "C"}


@as_root
def test_an_account_shared_with_other_services_is_named_when_the_data_are_made(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "UNPRIVILEGED", ("nobody",))

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with start_or_attach(f"embedded://{folder}"):
                pass

    said = [text for text in caplog.messages if text.startswith("the embedded PostgreSQL")]
    assert [message.partition(";")[0] for message in said] == [
        f"the embedded PostgreSQL in {str(folder)!r} runs as the user nobody, so other programs of that user can"
        " read and change its data"
    ]


@pytest.mark.usefixtures("data")
def test_a_user_without_a_name_learns_why_connections_failed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.embedded.server.name_of", lambda _uid: None)

    with pytest.raises(EmbeddedError, match="knows its users by name; add an entry to /etc/passwd"):
        start_or_attach(f"embedded://{folder}")


def test_a_folder_that_was_put_in_the_place_of_ours_is_not_used(folder: Path) -> None:
    home = DataFolder(folder)
    home.prepare()
    os.close(home.open("lock"))
    folder.rename(folder.with_name("moved"))
    folder.mkdir()

    os.close(home.open("users.lock"))

    assert list(folder.iterdir()) == []
    assert (folder.with_name("moved") / "users.lock").exists()
