"""A pooler that allows no transactions: a queue cannot work behind it, and gw reports it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.pgbouncer import PgBouncer, bouncer_program
from support.queue_fixture import QueueFixture, RunRecord, in_time

from gw_cli.exit_codes import ExitCode
from gw_cli.main import program
from gw_core.errors import InvalidSettingError


@pytest.fixture
def statement_bouncer(site: QueueFixture) -> Iterator[PgBouncer]:
    with PgBouncer(site.url, bouncer_program(), mode="statement") as bouncer:
        yield bouncer


def test_a_worker_says_at_its_start_that_the_pooler_does_not_do(
    site: QueueFixture, statement_bouncer: PgBouncer
) -> None:
    site.fill(1)
    runner, _, _ = site.runner({"work": RunRecord()}, url=statement_bouncer.url)

    with pytest.raises(InvalidSettingError, match=r"statement mode.*pool_mode to transaction"):
        in_time(runner.run)

    assert site.held() == []


def test_the_doctor_says_so_and_nothing_of_what_it_could_not_check(
    statement_bouncer: PgBouncer, capfd: pytest.CaptureFixture[str]
) -> None:
    code = program(["doctor", "--connection", statement_bouncer.url, "--json"])
    found = {each["check"]: each for each in json.loads(capfd.readouterr().out)}

    assert code == ExitCode.UNHEALTHY
    assert (found["pooler"]["status"], "statement mode" in found["pooler"]["message"]) == ("error", True)
    assert "vacuum" not in found
