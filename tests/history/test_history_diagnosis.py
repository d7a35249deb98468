"""What `gw doctor` and `/metrics` report of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest
from msgspec import structs
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import Client, ProbeSettings
from gw_core.front_ends import CheckStatus, Count, DoctorFacts, FrontEnd, HistoryStatus, Quality, diagnose
from gw_core.operations import Finding

EMPTY = HistoryStatus(
    rows=Count(0),
    size_bytes=50_000,
    waiting_rows=0,
    expired_partitions=0,
    latest_at=None,
    records_others=None,
)
FULL = structs.replace(
    EMPTY,
    rows=Count(1_234_567, Quality.ESTIMATE),
    size_bytes=220_000_000,
    latest_at=datetime(2026, 1, 1, tzinfo=UTC),
)
FEW = structs.replace(FULL, rows=Count(2), size_bytes=50_000)
UNANALYZED = structs.replace(FULL, rows=Count(10_000, Quality.AT_LEAST))
ROW = """
insert into _private_gw_history (job_id, attempt, max_attempts, task, state, final, created_at, finished_at, expires_at)
select n, 1, 25, 'work', 'completed', true, now(), now(), now() + interval '3 days' from generate_series(1, 10) as n
"""


def findings(status: HistoryStatus, url: str) -> list[Finding]:
    with Client(url) as client:
        facts: DoctorFacts = structs.replace(FrontEnd(client).examine(), history=status)
    return [each for each in diagnose(facts) if each.check == "history"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (EMPTY, (CheckStatus.OK, "history is empty", None)),
        (FULL, (CheckStatus.OK, "about 1,234,567 rows, 220 MB", None)),
        (FEW, (CheckStatus.OK, "2 rows, less than 1 MB", None)),
        (UNANALYZED, (CheckStatus.OK, "at least 10,000 rows, 220 MB", None)),
        (structs.replace(FULL, expired_partitions=1), (CheckStatus.OK, "about 1,234,567 rows, 220 MB", None)),
        (
            structs.replace(FULL, expired_partitions=3),
            (CheckStatus.WARNING, "3 partitions are expired and still there", "gw cleanup expired-history"),
        ),
        (
            structs.replace(FULL, waiting_rows=10_001),
            (CheckStatus.WARNING, "at least 10,000 rows wait for a partition", "start a worker that keeps history"),
        ),
    ],
    ids=["empty", "rows", "few", "unanalyzed", "one-expired", "expired", "waiting"],
)
def test_the_diagnosis_of_history(
    site: QueueFixture, status: HistoryStatus, expected: tuple[CheckStatus, str, str | None]
) -> None:
    (found,) = findings(status, site.url)

    assert (found.status, found.message[: len(expected[1])]) == expected[:2]
    assert (found.fix or "")[: len(expected[2] or "")] == (expected[2] or "")


def test_the_doctor_shows_the_trigger_of_jobs_ended_by_others(site: QueueFixture) -> None:
    site.client.history.record_others(timedelta(days=7))
    try:
        shown = [each.message for each in site.client.doctor.findings() if each.check == "history"]
    finally:
        site.client.history.record_others(None)

    assert "kept for 1w, by the trigger _private_gw_record_others of the jobs table" in shown[0]
    assert [each.message for each in site.client.doctor.findings() if each.check == "history"] == ["history is empty"]


def test_few_rows_are_counted_and_many_estimated(site: QueueFixture) -> None:
    def rows() -> str:
        return str(site.client.history.status().rows)

    assert rows() == "0"
    site.run(ROW)
    assert rows() == "10"
    site.run(ROW.replace("(1, 10)", "(1, 9991)"))
    assert rows() in ("10,000+", "~10,001")  # the server may have analyzed it
    site.run("analyze _private_gw_history_default")
    assert rows() == "~10,001"


def test_the_metrics_have_the_size_of_history(site: QueueFixture) -> None:
    site.run(ROW)
    with site.running(
        {"work": lambda payload: None},
        probe=ProbeSettings(port=0, metrics=True, sample_interval=timedelta(seconds=1)),
    ) as running:

        def text() -> str:
            host, port = running.runner.probe_address or ("", 0)
            with urlopen(f"http://{host}:{port}/metrics") as answer:
                return str(answer.read(), "utf-8")

        wait_until(lambda: "gw_queue_history_rows 10.0" in text())
        assert "gw_queue_history_rows_without_partition 10.0" in text()
        assert "gw_queue_history_expired_partitions 0.0" in text()
