"""A database whose encoding is not UTF-8: what it cannot store is written with escapes, and no outcome waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.databases import Databases, install_schema
from support.queue_fixture import QueueFixture

from gw_core import Client, GiveUp, TaskRegistry
from gw_core.errors import InvalidJobError
from gw_core.front_ends import HistoryState, JobResultRejected

SNOWMAN, CLEF = "\N{SNOWMAN}", "\N{MUSICAL SYMBOL G CLEF}"


@pytest.fixture
def latin(databases: Databases) -> Iterator[QueueFixture]:
    """A queue in a database with the encoding LATIN1."""
    name = f"{databases.run.prefix}{databases.worker}_latin"
    with psycopg.connect(databases.conninfo, autocommit=True) as server:
        encoding = "encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'"
        if server.info.server_version >= 15_00_00:  # the server's default may be a provider that knows UTF-8 alone
            encoding += " locale_provider libc"
        server.execute(f'create database "{name}" {encoding} template template0'.encode())
    try:
        install_schema(databases.url(name))
        with QueueFixture(databases.url(name)) as site:
            yield site
    finally:
        databases.drop(name)


def test_errors_are_written_with_escapes_and_delay_no_other_job(latin: QueueFixture) -> None:
    latin.fill(400, task="fails")
    latin.fill(20, task="works")

    def fails(payload: Any) -> None:
        raise GiveUp(f"caf\N{LATIN SMALL LETTER E WITH ACUTE} {SNOWMAN}" if payload["n"] == 1 else SNOWMAN)

    runner, recorded, _ = latin.runner({"fails": fails, "works": lambda payload: None})
    result = runner.run_once()

    assert (result.completed, result.failed) == (20, 400)
    errors = {job["payload"]["n"]: job["last_error"] for job in latin.jobs()}
    assert errors[1].startswith(r"caf\xe9 \u2603 (given up")
    assert all(error.startswith(r"\u2603 (given up") for n, error in errors.items() if n != 1)
    assert recorded.of(JobResultRejected) == []


def test_a_text_that_the_encoding_has_is_written_as_it_is(latin: QueueFixture) -> None:
    def work(payload: object) -> None:
        raise ValueError("caf\N{LATIN SMALL LETTER E WITH ACUTE}")

    latin.fill(1)
    latin.run_once({"work": work})

    assert "caf\N{LATIN SMALL LETTER E WITH ACUTE}" in latin.jobs()[0]["last_error"]


def test_results_tracebacks_and_payloads_keep_their_meaning(latin: QueueFixture) -> None:
    registry = TaskRegistry()
    value = {SNOWMAN: ["\N{LATIN SMALL LETTER E WITH ACUTE}", CLEF]}

    @registry.task("answer", result=True)
    def answer(payload: object) -> object:
        return value

    @registry.task("fail", keep=timedelta(hours=1))
    def fail(payload: object) -> None:
        raise RuntimeError(SNOWMAN)

    @registry.task("batch")
    def batch(items: list[Any]) -> list[Any]:
        return [RuntimeError(SNOWMAN) if item == SNOWMAN else None for item in items]

    with Client(latin.url) as client:
        answered, failed = client.add("answer"), client.add("fail", max_attempts=1)
        latin.run(
            "select add_job('batch', %s::json)",
            r'["good", "\u2603"]',
        )
        latin.run_once(registry)

        assert answered is not None
        assert failed is not None
        assert client.result(answered.id, timeout=0) == value
        [attempt] = client.history.attempts(failed.id)

    assert (attempt.state, attempt.error_type) == (HistoryState.FAILED, "builtins.RuntimeError")
    assert r"RuntimeError: \u2603" in (attempt.traceback or "")
    assert [SNOWMAN] in [job["payload"] for job in latin.jobs()]


def test_a_payload_that_the_encoding_does_not_have_is_rejected_when_it_is_added(latin: QueueFixture) -> None:
    with pytest.raises(InvalidJobError, match="has no equivalent in encoding"):
        latin.client.add("work", {"text": SNOWMAN})

    assert latin.jobs() == []
