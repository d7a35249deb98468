"""A pooler that allows no transactions: a queue cannot work behind it, and gw reports it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cli_program import CliProgram
from support.pgbouncer import PgBouncer, bouncer_program
from support.queue_fixture import QueueFixture, RunRecord, in_time

from gw_core.errors import InvalidSettingError

UNHEALTHY = 7
USAGE = 2


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
    statement_bouncer: PgBouncer, gw: CliProgram
) -> None:
    ended = gw("doctor", "--connection", statement_bouncer.url, "--json")
    found = {each["check"]: each for each in ended.json}

    assert ended.code == UNHEALTHY
    assert (found["pooler"]["status"], "statement mode" in found["pooler"]["message"]) == ("error", True)
    assert "vacuum" not in found


@pytest.mark.parametrize("line", ["workers", "retry 1", "pause task:work", "sweep"])
def test_a_command_that_needs_a_transaction_says_so(statement_bouncer: PgBouncer, gw: CliProgram, line: str) -> None:
    ended = gw(*line.split(), "--connection", statement_bouncer.url)

    assert (ended.code, "set its pool_mode to transaction" in ended.err) == (USAGE, True), ended.err
