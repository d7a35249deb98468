"""`gw history`, `gw show` of a job that is gone, `gw cleanup expired-history`, and `client.history` behind them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.cli_program import CliProgram
from support.program_fixtures import gw as gw, relaxed_timeouts as relaxed_timeouts
from support.queue_fixture import QueueFixture

from gw_core import GiveUp, TaskRegistry
from gw_core.errors import InvalidInputError, SelectionError


@pytest.fixture
def database_url(site: QueueFixture) -> str:
    """The database of `site`, on which `gw` runs."""
    return site.url


@pytest.fixture
def filled(site: QueueFixture) -> QueueFixture:
    """Ten attempts: of job 1 three, of the others one each; the larger the id, the later it ended."""
    site.run(
        """
        insert into _private_gw_history (job_id, attempt, max_attempts, task, queue_name, key, state, final, result,
          error, worker_id, payload, created_at, started_at, finished_at, expires_at)
        select id, attempt, 25, task, queue, key, state, state = 'completed', result, error, worker, payload,
               at - interval '1 hour', at - interval '2 s', at, at + interval '7 days'
          from (values
            (1, 1, 'mail', 'q', 'k-1', 'retried', null, 'RuntimeError: timed out', 'gw-a', null, 100),
            (1, 2, 'mail', 'q', 'k-1', 'retried', null, 'RuntimeError: timed out', 'gw-b', null, 90),
            (1, 3, 'mail', 'q', 'k-1', 'completed', '{"sent": 1}', null, 'gw-a', '{"to": "x"}', 80),
            (2, 1, 'mail', null, null, 'completed', '{"sent": 2}', null, 'gw-a', null, 70),
            (3, 25, 'mail', null, null, 'failed', null, 'GiveUp: no account', 'gw-b', null, 60),
            (4, 1, 'report', null, null, 'completed', 'null', null, 'gw-b', null, 50),
            (5, 1, 'send/sms', null, null, 'completed', null, null, 'gw-b', null, 40),
            (6, 1, 'mail', null, null, 'removed', null, null, null, null, 30),
            (7, 1, 'mail', null, null, 'completed', '7', null, 'gw-b', null, 30),
            (8, 1, 'mail', null, null, 'completed', '8', null, 'gw-b', null, 30)
          ) as v (id, attempt, task, queue, key, state, result_text, error, worker, payload_text, minutes)
         cross join lateral (select now() - v.minutes * interval '1 minute' as at, result_text::json as result,
                                    payload_text::json as payload) as made
        """
    )
    return site


def ids(site: QueueFixture, which: Any = "", **options: Any) -> list[int]:
    return [each.job_id for each in site.client.history.list(which, **options).attempts]


def test_the_latest_come_first(filled: QueueFixture) -> None:
    assert ids(filled) == [8, 7, 6, 5, 4, 3, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("task:mail", [8, 7, 6, 3, 2, 1, 1, 1]),
        ("task:send*", [5]),
        ("task:report,send/sms", [5, 4]),
        ("-task:mail", [5, 4]),
        ("state:failed", [3]),
        ("state:failed,retried", [3, 1, 1]),
        ("state:completed task:mail", [8, 7, 2, 1]),
        ("-state:completed", [6, 3, 1, 1]),
        ("1", [1, 1, 1]),
        ("id:2..3", [3, 2]),
        ("attempts:>1", [3, 1, 1]),
        ("queue:q", [1, 1, 1]),
        ("job_key:k*", [1, 1, 1]),
        ("worker:gw-a", [2, 1, 1]),
        ('error:"timed out"', [1, 1]),
        ("finished_at:-55m..now", [8, 7, 6, 5, 4]),
        ("finished_at:<-75m", [1, 1, 1]),
        ("created_at:>-95m", [8, 7, 6]),
        ("started_at:>-35m", [8, 7, 6]),
        ("payload.to:x", [1]),
        ("result.sent:2", [2]),
        ("result:sent", [2, 1]),
        (4, [4]),
        ([2, 4], [4, 2]),
    ],
    ids=str,
)
def test_conditions_select(filled: QueueFixture, which: Any, expected: list[int]) -> None:
    assert ids(filled, which) == expected


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("state:running", "'running' is not a state of history; give one of completed, retried, failed, removed"),
        ("priority:3", "unknown term 'priority'; terms are state, id, task,"),
        ("task:", "a value is missing, as in task:send_email"),
    ],
)
def test_a_condition_that_history_has_not_is_an_error(site: QueueFixture, which: str, reason: str) -> None:
    with pytest.raises(SelectionError, match=reason):
        site.client.history.list(which)


def test_pages_continue_where_they_ended_also_among_equal_times(filled: QueueFixture) -> None:
    history, after, found = filled.client.history, None, []
    for _ in range(10):
        page = history.list("task:mail", after=after, limit=1)
        found += [(each.job_id, each.attempt) for each in page.attempts]
        after = page.after
        if after is None:
            break

    assert found == [(8, 1), (7, 1), (6, 1), (3, 25), (2, 1), (1, 3), (1, 2), (1, 1)]


@pytest.mark.parametrize("after", ["x", "2026-01-01", "2026-01-01T00:00:00+00:00/x/1"])
def test_a_cursor_that_is_none_is_an_error(site: QueueFixture, after: str) -> None:
    with pytest.raises(InvalidInputError, match="is not the end of a page of history"):
        site.client.history.list(after=after)


def test_expired_rows_are_not_shown(filled: QueueFixture) -> None:
    filled.run("update _private_gw_history set expires_at = now() where job_id < 8")

    assert ids(filled) == [8]
    assert filled.client.history.attempts(1) == ()
    assert filled.client.history.count() == {"completed": 1}


def test_results_and_payloads_are_read_only_when_asked_for(filled: QueueFixture) -> None:
    (plain,) = filled.client.history.list("attempts:3").attempts
    (whole,) = filled.client.history.list("attempts:3", with_result=True, with_payload=True).attempts

    assert (plain.result_json, plain.payload) == (None, None)
    assert (whole.result_json, whole.payload_json, whole.result) == ('{"sent": 1}', '{"to": "x"}', {"sent": 1})


# -- the commands


def test_history_prints_json(gw: CliProgram, filled: QueueFixture) -> None:
    (found,) = gw("history", "result.sent:1", "--result", "--json").json

    expected = {"id": 1, "state": "completed", "attempts": 3, "result": {"sent": 1}, "final": True, "worker": "gw-a"}
    assert {key: found[key] for key in expected} == expected


def test_a_job_without_a_real_time_is_shown_among_the_others(gw: CliProgram, site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("mail", keep=timedelta(days=7))(lambda payload: None)
    for created_at in ("infinity", "-infinity", "now"):
        job_id = site.add("mail")
        site.run("update _private_jobs set created_at = %s::text::timestamptz where id = %s", created_at, job_id)
    site.run_once(tasks)

    latest, earliest, _ = sorted(site.client.history.list().attempts, key=lambda each: each.job_id)

    assert (latest.created_at.year, earliest.created_at.year) == (9999, 1)
    assert site.client.history.attempts(latest.job_id) == (latest,)
    shown = [row["created_at"] for row in gw("history", "--json").json]
    assert {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"} <= set(shown)


def test_history_says_where_to_continue(gw: CliProgram, filled: QueueFixture) -> None:
    first = gw("history", "task:mail", "--limit", "3", "--json")
    cursor = first.err.rpartition("--after ")[2].strip()

    rest = gw("history", "task:mail", "--after", cursor, "--json")

    assert [each["id"] for each in first.json + rest.json] == [8, 7, 6, 3, 2, 1, 1, 1]
    assert rest.err == ""


def test_history_counts_by_state(gw: CliProgram, filled: QueueFixture) -> None:
    counts = gw("history", "task:mail", "--count", "--json").json

    assert {each["state"]: each["count"] for each in counts} == {
        "completed": 4,
        "retried": 2,
        "failed": 1,
        "removed": 1,
    }


def test_an_empty_history_says_how_to_keep_jobs(gw: CliProgram, site: QueueFixture) -> None:
    assert 'set history = "7d"' in gw("history").err


def test_history_without_a_match_says_so(gw: CliProgram, filled: QueueFixture) -> None:
    assert "Nothing in history matches" in gw("history", "task:none").err


def test_show_of_a_job_that_is_gone_shows_its_attempts(gw: CliProgram, filled: QueueFixture) -> None:
    shown = gw("show", "1", "--json").json

    assert (shown["state"], shown["result"], shown["payload"]) == ("completed", {"sent": 1}, {"to": "x"})
    assert [(each["attempts"], each["error"]) for each in shown["ended_attempts"]] == [
        (1, "RuntimeError: timed out"),
        (2, "RuntimeError: timed out"),
        (3, None),
    ]
    assert "attempt 2 retried" in gw("show", "1").out


def test_show_of_a_job_that_waits_names_its_history(gw: CliProgram, filled: QueueFixture) -> None:
    job_id = filled.add("mail")
    filled.run("update _private_gw_history set job_id = case job_id when 3 then %s else job_id + 9000 end", job_id)

    shown = gw("show", str(job_id))

    assert f"History has 1 ended attempt of this job: gw history {job_id}" in shown.err


@pytest.mark.parametrize("error", [RuntimeError("timed out"), GiveUp("no account")], ids=["an error", "given up"])
def test_show_has_the_time_of_a_recorded_failure(gw: CliProgram, site: QueueFixture, error: Exception) -> None:
    tasks = TaskRegistry()

    @tasks.task("mail")
    def mail(payload: object) -> None:
        raise error

    unrecorded = site.add("mail")
    site.run_once(tasks)
    recorded = site.add("mail")
    site.run_once(tasks, history=timedelta(days=7))

    (attempt,) = site.client.history.attempts(recorded)
    assert site.client.jobs.show(recorded).failed_at == attempt.finished_at  # type: ignore[union-attr]
    assert gw("show", str(recorded), "--json").json["failed_at"] is not None
    assert gw("show", str(unrecorded), "--json").json["failed_at"] is None


def test_show_of_a_job_that_is_nowhere(gw: CliProgram, site: QueueFixture) -> None:
    ended = gw("show", "77")

    assert (ended.code, "a job that was completed is gone, unless history keeps it" in ended.err) == (6, True)


def test_cleanup_drops_expired_partitions(gw: CliProgram, site: QueueFixture) -> None:
    site.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )

    counted = gw("cleanup", "expired-history", "--dry-run", "--json").json
    dropped = gw("cleanup", "expired-history", "--json").json

    assert counted == [{"target": "expired-history", "count": 1, "dry_run": True}]
    assert dropped == [{"target": "expired-history", "count": 1, "dry_run": False}]
    assert site.run("select to_regclass('_private_gw_history_20200101') as name") == [{"name": None}]


def test_the_status_has_what_history_holds(filled: QueueFixture) -> None:
    filled.run("analyze _private_gw_history")

    status = filled.client.history.status()

    assert (status.waiting_rows, status.expired_partitions, status.records_others) == (10, 0, None)
    assert status.latest_at == max(row["finished_at"] for row in filled.run("select * from _private_gw_history"))
