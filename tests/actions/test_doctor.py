"""`gw doctor` and `gw health` on real databases."""

from __future__ import annotations

import re

import pytest
from psycopg.conninfo import make_conninfo
from support.cli_program import CliProgram, CliResult
from support.jobs_in_states import Queue


def verdicts(ended: CliResult) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in ended.json:
        if found.get(each["check"]) != "error":
            found[each["check"]] = each["status"]
    return found


def test_a_new_queue_is_healthy(gw: CliProgram, queue: Queue) -> None:
    ended = gw("doctor", "--json")

    # Other tests may hold transactions open on the same server, but not in this database.
    assert (ended.code, set(verdicts(ended).values()), ended.err) == (0, {"ok"}, "")
    assert all(set(each) == {"check", "status", "message", "fix"} for each in ended.json)


JOBS = "graphile_worker._private_jobs"


def test_nothing_is_advised_for_tables_that_the_schema_does_not_have_yet(gw: CliProgram, queue: Queue) -> None:
    queue.rows("drop schema graphile_worker cascade; create schema graphile_worker")
    queue.rows("create table graphile_worker.migrations (id int primary key, ts timestamptz not null default now())")
    queue.rows("insert into graphile_worker.migrations (id) select generate_series(1, 10)")

    ended = gw("doctor", "--json")

    assert (ended.code, verdicts(ended)["schema"]) == (7, "error")
    assert not any("_private_jobs" in str(each["fix"]) for each in ended.json)


@pytest.mark.parametrize(
    ("statement", "check", "fix"),
    [
        pytest.param(
            f"update {JOBS} set locked_by = 'old', locked_at = now() - interval '5 hours'",
            "locks",
            "gw sweep",
            id="a stale lock",
        ),
        pytest.param(
            f"update {JOBS} set run_at = now() - interval '1 hour', created_at = now() - interval '1 hour'",
            "backlog",
            "gw run",
            id="a backlog",
        ),
        pytest.param(f"alter table {JOBS} set (autovacuum_enabled = off)", "vacuum", "reset", id="no autovacuum"),
        pytest.param("drop index graphile_worker.jobs_main_index", "indexes", "create index", id="an index missing"),
        pytest.param(
            "update pg_index set indisvalid = false where indexrelid = 'graphile_worker.jobs_main_index'::regclass",
            "indexes",
            'reindex index "graphile_worker"."jobs_main_index"',
            id="an index invalid",
        ),
        pytest.param(
            "select setval(pg_get_serial_sequence('graphile_worker._private_job_queues', 'id'), 2000000000)",
            "ids",
            "restart",
            id="ids nearly used up",
        ),
        pytest.param(
            "insert into graphile_worker.migrations (id, breaking) values (21, true)",
            "schema",
            "follow",
            id="a breaking revision we do not know",
        ),
    ],
)
def test_what_is_wrong_is_found(gw: CliProgram, queue: Queue, statement: str, check: str, fix: str) -> None:
    queue.ready()
    queue.rows(statement)

    ended = gw("doctor", "--json")

    assert (ended.code, verdicts(ended)[check]) == (7, "error")
    assert any(fix in str(each["fix"]) for each in ended.json if each["check"] == check)
    assert "error" in ended.err


def test_times_in_the_future_are_reported_with_what_follows(gw: CliProgram, queue: Queue) -> None:
    minute = "date_trunc('minute', now() + interval '3 hours')"
    values = f"{minute}, 'mail', 'gw-a', 1, 0, 0, 1, '{{1}}', 1, 1"
    queue.rows(f"insert into graphile_worker._private_gw_statistics values ({values})")
    (statistics,) = (each for each in gw("doctor", "--json").json if each["check"] == "future")
    queue.running(by="gw-a")
    queue.heartbeat("gw-a", ago="-2 hours")
    queue.rows(
        "insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)"
        f" values ('nightly', now(), {minute})"
    )
    ended = gw("doctor", "--json")
    (found,) = (each for each in ended.json if each["check"] == "future")

    assert (statistics["status"], found["status"], ended.code) == ("warning", "error", 7)
    assert re.search("the server's clock was set back: times in the queue are up to .* in the future", found["message"])
    assert "until then no run of nightly is added and gw-a is not presumed dead" in found["message"]
    assert found["fix"] == "gw cron forget nightly; if the worker is dead: gw unlock gw-a"
    for command in ("cron forget nightly", "unlock gw-a --yes"):
        assert gw(*command.split()).code == 0
    assert [each["status"] for each in gw("doctor", "--json").json if each["check"] == "future"] == ["warning"]


def test_the_remedy_for_a_missing_index_makes_it_again(gw: CliProgram, queue: Queue) -> None:
    for name in ("jobs_main_index", "jobs_no_queue_index"):
        before = queue.value("select indexdef from pg_indexes where indexname = %s", name)
        queue.rows(f"drop index graphile_worker.{name}")
        (fix,) = (each["fix"] for each in gw("doctor", "--json").json if each["check"] == "indexes")
        queue.rows(fix)
        assert queue.value("select indexdef from pg_indexes where indexname = %s", name) == before


def test_a_role_that_sees_no_rows_is_reported(gw: CliProgram, queue: Queue) -> None:
    queue.ready()

    ended = gw("doctor", "--json", "-c", make_conninfo(queue.url, options="-crole=pg_read_all_data"))

    assert (ended.code, verdicts(ended)["row security"], verdicts(ended)["rights"]) == (7, "error", "ok")


def test_a_worker_that_stopped_sending_heartbeats_with_a_job_is_named(gw: CliProgram, queue: Queue) -> None:
    queue.running(by="stale\x1b")
    queue.heartbeat("stale\x1b", ago="3600 seconds")

    ended = gw("doctor")

    assert (ended.code, r"stale\x1b has locked 1 job" in ended.out, "\x1b" in ended.out) == (7, True, False)


def test_a_database_without_a_queue_reports_what_to_run(gw: CliProgram, empty_database_url: str) -> None:
    ended = gw("doctor", "--json", "-c", empty_database_url)

    assert (ended.code, ended.json[-1]["status"], ended.json[-1]["fix"]) == (7, "error", "gw migrate")


def test_a_schema_of_graphile_worker_alone_is_healthy_with_notes(gw: CliProgram, queue: Queue) -> None:
    queue.without_our_line()

    ended = gw("doctor", "--json")

    assert ended.code == 0
    assert {check for check, verdict in verdicts(ended).items() if verdict == "warning"} == {"schema", "workers"}


def test_an_examination_changes_nothing(gw: CliProgram, queue: Queue) -> None:
    queue.failed(), queue.running()
    before = queue.jobs()

    gw("doctor")

    assert queue.jobs() == before


# -- health --------------------------------------------------------------------------------------------------------


def test_a_server_that_takes_no_writes_is_not_healthy(gw: CliProgram, queue: Queue) -> None:
    name = queue.value("select quote_ident(current_database())")
    # Sessions that are open already, such as this one, keep their default.
    queue.rows(f"alter database {name} set default_transaction_read_only = on")
    try:
        ended = gw("health")
    finally:
        queue.rows(f"alter database {name} reset default_transaction_read_only")

    assert (ended.code, ended.out) == (3, "")
    assert ended.err == "gw: the server is read-only, so no worker can use the queue there; connect to the primary\n"


def test_a_queue_that_answers_is_healthy(gw: CliProgram, queue: Queue) -> None:
    ended = gw("health", "--json")

    assert (ended.code, ended.json["healthy"], 0 < ended.json["milliseconds"] < 60_000) == (0, True, True)


@pytest.mark.parametrize(
    ("where", "code"),
    [
        pytest.param("postgres://nobody@127.0.0.1:1/none", 3, id="no server"),
        pytest.param("{elsewhere}", 4, id="no such database"),
        pytest.param("{empty}", 5, id="no schema"),
    ],
)
def test_a_queue_that_does_not_answer_says_why_by_its_code(
    gw: CliProgram, queue: Queue, empty_database_url: str, where: str, code: int
) -> None:
    values = {"elsewhere": make_conninfo(queue.url, dbname="gw_none"), "empty": empty_database_url}

    ended = gw("health", "-c", where.format(**values))

    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)


# -- vacuum --------------------------------------------------------------------------------------------------------


def test_a_table_that_is_vacuumed_late_is_noted_until_its_own_setting_says_otherwise(
    gw: CliProgram, queue: Queue
) -> None:
    def vacuum_notes() -> list[str]:
        found = gw("doctor", "--json").json
        return [each["status"] for each in found if each["check"] == "vacuum"]

    assert vacuum_notes() == ["ok"]

    queue.rows(f"alter table {JOBS} set (autovacuum_vacuum_threshold = 400000)")
    assert vacuum_notes() == ["warning"]

    queue.rows(f"alter table {JOBS} set (autovacuum_vacuum_threshold = 50)")
    assert vacuum_notes() == ["ok"]


def test_a_queue_that_citus_distributes_is_wrong(gw: CliProgram, queue: Queue) -> None:
    queue.rows(
        "set allow_system_table_mods = on; create table pg_catalog.pg_dist_partition (logicalrelid regclass); "
        f"insert into pg_catalog.pg_dist_partition values ('{JOBS}')"
    )

    ended = gw("doctor", "--json")

    assert (ended.code, verdicts(ended)["citus"]) == (7, "error")
