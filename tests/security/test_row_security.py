"""Every command reports that row security hides the queue from a role, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.shell import CliResult, InProcessShell, Shell

COMMANDS = (
    "list",
    "show 1",
    "stats",
    "queues",
    "tasks",
    "workers",
    "retry --all --yes",
    "complete --all --yes",
    "fail --all --yes",
    "sweep",
    "sweep --dry-run",
    "cleanup failed-jobs --yes",
    "cron list --crontab crontab",
    "run --once",
)


@pytest.fixture
def blind(server: str) -> Iterator[str]:
    """A role with every grant and without a policy; asked for before the database, so that it is dropped after it."""
    name = f"schema_blind_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create role {name}")
    yield name
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop role {name}")


@pytest.fixture
def shell(
    blind: str,
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], CliResult]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        for what in ("usage on schema", "all on all tables in schema", "all on all sequences in schema"):
            connection.execute(f"grant {what} graphile_worker to {blind}".encode())
        connection.execute("select graphile_worker.add_job('x')")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "x.py").write_text("def x(payload):\n    pass\n")
    (tmp_path / "crontab").write_text("0 4 * * * nightly\n")
    url = make_conninfo(database_url, options=f"-c role={blind}")

    def run(line: str) -> CliResult:
        if line.startswith("run"):
            return Shell(tmp_path, database=url).gw(*line.split())
        return InProcessShell(tmp_path, database=url, capsys=capsys, monkeypatch=monkeypatch).gw(*line.split())

    return run


@pytest.mark.parametrize("line", COMMANDS)
def test_a_queue_that_row_security_hides_is_not_called_empty(
    shell: Callable[[str], CliResult], blind: str, line: str
) -> None:
    ended = shell(line)

    assert ended.code == 4, ended
    assert f"row security hides the jobs of schema 'graphile_worker' from role '{blind}'" in ended.err
    assert f'alter role "{blind}" bypassrls' in ended.err


def test_the_doctor_says_so_too(shell: Callable[[str], CliResult]) -> None:
    ended = shell("doctor")

    assert ended.code == 7
    assert "row security" in ended.out
