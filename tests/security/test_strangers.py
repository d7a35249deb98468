"""A role that can only connect to the database stops nothing with the locks that it can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.project_files import project_files
from support.recovery_fixture import RecoveryFixture, seconds
from support.shell import CliResult, Shell

from gw_core.front_ends import CheckStatus

REPOSITORY = Path(__file__).parents[2]
ADVISORY_LOCK = re.compile(r"pg_(?:try_)?advisory_(?:xact_)?lock(?:_shared)?\s*\(([^)]*)\)")


def advisory_locks() -> set[str]:
    """The arguments of every call that takes an advisory lock, in SQL and in Python."""
    files = [*project_files(REPOSITORY / "sql", "*.sql"), *project_files(REPOSITORY / "gw_core", "*.py")]
    return {arguments for file in files for arguments in ADVISORY_LOCK.findall(file.read_text("utf-8"))}


@pytest.fixture
def ward(installed: str) -> Iterator[RecoveryFixture]:
    with RecoveryFixture(installed) as ward:
        yield ward


@pytest.fixture
def stranger(ward: RecoveryFixture) -> Iterator[psycopg.Connection]:
    """A session of a role without any right but to connect, which holds every advisory lock of gw."""
    role = f"stranger_{uuid4().hex[:10]}"
    ward.run(f"create role {role} login")
    try:
        with psycopg.connect(make_conninfo(ward.url, user=role), autocommit=True) as session:
            for arguments in advisory_locks():
                session.execute(f"select pg_advisory_lock({arguments})".encode())
            yield session
    finally:
        ward.run(f"drop role {role}")


def test_every_advisory_lock_has_a_constant_key_that_the_stranger_can_take() -> None:
    assert advisory_locks(), "the search finds no lock"
    assert all(re.fullmatch(r"-?\d+(, -?\d+)?", arguments) for arguments in advisory_locks())


def test_a_role_that_can_only_connect_stops_no_command(
    ward: RecoveryFixture, stranger: psycopg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload):\n    pass\n")
    shell = Shell(tmp_path, database=ward.url)
    lines = (
        "migrate --schema another",
        "add mail",
        "pause task:mail",
        "resume task:mail",
        "limit mail --running 1",
        "limit mail --off",
        "cleanup unused-tasks --yes",
        "add mail",
        "run --once",
    )

    ended: dict[str, CliResult] = {line: shell.gw(*line.split()) for line in lines}

    assert {line: each.err for line, each in ended.items() if each.code != 0} == {}
    assert ward.jobs() == []


def test_a_role_that_can_only_connect_does_not_stop_recovery_and_the_doctor_names_it(
    ward: RecoveryFixture, stranger: psycopg.Connection
) -> None:
    job_id = ward.add("wait", queue_name="q")
    with ward.process() as process:
        dead = process.wait_to_say(f"began {job_id} as").rpartition(" ")[2]
        process.kill()
    ward.let_time_pass(dead)

    (found,) = [each for each in ward.client.doctor.findings() if each.check == "sweeps"]
    report = ward.sweep(recovery_delay=seconds(0))

    assert (report.jobs, report.queues, ward.held(), ward.workers()) == (1, 1, [], [])
    assert found.status is CheckStatus.WARNING
    assert f"process {stranger.info.backend_pid} of role {stranger.info.user} " in found.message
    assert found.fix == f"select pg_terminate_backend({stranger.info.backend_pid})"
