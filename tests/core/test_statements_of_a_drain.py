"""What a worker sends while history, pauses, limits and groups are not used: nothing for them for each job."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture

from gw_core import TaskRegistry

Statements = Counter[tuple[str, str]]

MANY = 10_000
"""A worker needs at least twenty statements to claim these jobs, and as many to settle them."""


def drain(site: QueueFixture, proxy: DatabaseProxy, count: int, **options: object) -> Statements:
    """Run this many jobs, and return the statements of the connections that claim and settle."""
    tasks = TaskRegistry()
    tasks.task("work", **options)(lambda payload: None)  # type: ignore[arg-type]
    site.fill(count)
    recorded = proxy.record()
    assert site.run_once(tasks, url=proxy.url).completed == count
    # The last channel has a random name.
    return Counter(
        (name, text.rpartition("listen")[0] or text) for name, text in recorded if name in ("gw:claim", "gw:settle")
    )


def at_the_start(statements: Statements) -> Statements:
    """Return the statements that neither claim nor settle."""
    return Counter({key: count for key, count in statements.items() if not is_of_jobs(key[1])})


def is_of_jobs(text: str) -> bool:
    # On a busy machine a drain returns some jobs that it has claimed.
    return text.startswith(("with recursive", "with completed as", "with returns as"))


@pytest.mark.direct("behind a pooler each transaction sends its settings")
def test_a_drain_sends_statements_for_jobs_and_a_fixed_number_at_its_start(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    few, many = drain(site, proxy, 20), drain(site, proxy, MANY)

    assert set(at_the_start(few)) == set(at_the_start(many))
    assert any("unknown_jobs as" in text for _, text in many)  # at its end
    # Those of its end are repeated when it has returned jobs.
    assert sum(at_the_start(many).values()) <= 30
    assert sum(many.values()) < 600  # the jobs of a claim, and outcomes, share statements


def test_nothing_that_is_off_appears_in_the_statements_for_jobs(site: QueueFixture, proxy: DatabaseProxy) -> None:
    many = drain(site, proxy, MANY)

    for_jobs = {key for key, count in many.items() if count >= 8}
    assert {name for name, _ in for_jobs} == {"gw:claim", "gw:settle"}
    assert [text for _, text in for_jobs if "_private_gw_" in text] == []
    # The rules are read once, when the connection is new; they say what is paused and limited.
    assert [count for (_, text), count in many.items() if "_private_gw_claim_rules" in text] == [1]


def test_a_feature_that_is_on_appears(site: QueueFixture, proxy: DatabaseProxy) -> None:
    statements = drain(site, proxy, 50, keep=timedelta(days=1))

    assert any("_private_gw_history" in text for name, text in statements if name == "gw:settle")
