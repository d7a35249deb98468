"""A worker behind a real PgBouncer: what it notices, logs and does without."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from support.cli_program import CliProgram
from support.database_proxy import DatabaseProxy
from support.pgbouncer import PgBouncer, bouncer_program
from support.queue_fixture import DEADLINE, NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import Client, JobSpec, SessionLimits
from gw_core.errors import ResultError
from gw_core.events import JobCompleted
from gw_core.front_ends import Database, FrontEnd, PoolerDetected, PoolerMode, PoolListening, PoolListenLost


def test_the_mode_of_a_pooler_is_noticed(site: QueueFixture, bouncer: PgBouncer) -> None:
    def noticed(url: str) -> PoolerMode:
        database = Database(url, notice_pooler=True)
        database.connect("look").close()
        return database.pooling

    assert noticed(site.url) is PoolerMode.NONE
    assert noticed(bouncer.url) is PoolerMode.TRANSACTION


@pytest.mark.parametrize("servers", [1, 2, 3, 4, 5])
def test_a_pooler_that_takes_its_connections_in_turn_is_noticed(site: QueueFixture, servers: int) -> None:
    in_turn = {"mode": "transaction", "pool_size": servers, "settings": "server_round_robin = 1"}
    with PgBouncer(site.url, bouncer_program(), **in_turn) as bouncer:
        bouncer.prepare_for_others()
        database = Database(bouncer.url, notice_pooler=True)
        database.connect("look").close()

        assert database.pooling is PoolerMode.TRANSACTION


def test_a_pooler_that_lends_for_sessions_is_no_failure(site: QueueFixture, session_bouncer: PgBouncer) -> None:
    with site.running({"work": RunRecord()}, url=session_bouncer.url, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)

    assert [event.mode for event in running.recorded.of(PoolerDetected)] == [PoolerMode.SESSION]


def test_behind_a_pooler_jobs_are_found_by_polling_and_it_says_so_once(site: QueueFixture, bouncer: PgBouncer) -> None:
    with site.running({"work": RunRecord()}, url=bouncer.url, poll_interval=ms(50)) as running:
        for count in (1, 2, 3):
            site.fill(1, queue="'q'")
            running.recorded.wait_for(JobCompleted, count=count)

    assert running.recorded.of(PoolListening) == []
    assert len([line for line in running.log.of("info") if "pooler" in line]) == 1
    assert [each for each in running.log.of("warning") if "eartbeat" not in each] == []


def test_behind_a_pooler_a_backlog_is_drained(site: QueueFixture, bouncer: PgBouncer) -> None:
    site.fill(3_000)
    site.fill(500, queue="'q' || (n %% 7)")

    assert site.run_once({"work": RunRecord()}, url=bouncer.url).completed == 3_500
    assert site.held() == []


def test_no_setting_of_ours_stays_behind_in_the_pooler(site: QueueFixture, bouncer: PgBouncer) -> None:
    site.fill(100)
    site.run_once({"work": RunRecord()}, url=bouncer.url)

    changed = "select name from pg_settings where source = 'session'"
    with psycopg.connect(bouncer.url, autocommit=True) as other:
        names = {row[0] for row in other.execute(changed, prepare=False)}
    assert names & {"enable_seqscan", "synchronous_commit", "lock_timeout", "statement_timeout", "jit"} == set()


def test_nothing_follows_the_sync_of_a_pipeline(site: QueueFixture, bouncer: PgBouncer) -> None:
    # PgBouncer gives the server's side back when a Sync is answered. A later Flush takes it again, and keeps it.
    proxy = DatabaseProxy(bouncer.url)
    kinds = proxy.record_kinds()
    with Client(proxy.url) as client:
        client.add_many(JobSpec(task="work", payload={"text": "x" * 5_000}) for _ in range(1_000))
        client.queues.list()
        client.doctor.findings()
    site.run_once({"work": RunRecord()}, url=proxy.url)
    proxy.close()

    sessions = {name: "".join(kind for other, kind in kinds if other == name) for name, _ in kinds}
    assert {"gw", "gw:claim", "gw:settle"} <= sessions.keys()
    assert [name for name, sent in sessions.items() if "SH" in sent] == []


def test_clients_leave_no_listen_in_the_pooler(site: QueueFixture, bouncer: PgBouncer) -> None:
    proxy = DatabaseProxy(bouncer.url)
    sent = proxy.record_texts()
    with Client(proxy.url) as client:
        job = client.add("work")
        waiting = threading.Thread(target=_wait_for, args=(client, job.id))
        waiting.start()
        wait_until(lambda: any("results" in each.session for each in [*sent]), what="the client to want to listen")
        client.jobs.complete([job.id])
        waiting.join(DEADLINE)
        FrontEnd(client).listen().close()
    proxy.close()

    assert [each.text for each in sent if "listen" in each.text.lower()] == []


def _wait_for(client: Client, job_id: int) -> None:
    with suppress(ResultError):  # it keeps no result
        client.result(job_id, timeout=DEADLINE)


def test_without_a_pooler_clients_listen(site: QueueFixture, session_bouncer: PgBouncer) -> None:
    for url in (site.url, session_bouncer.url):
        with Client(url) as client, FrontEnd(client).listen() as listener:
            site.fill(1)
            assert listener.wait(ms(1_000 * DEADLINE)) == 1


def test_behind_a_pooler_a_direct_connection_receives_jobs_immediately(site: QueueFixture, bouncer: PgBouncer) -> None:
    options = {"url": bouncer.url, "poll_interval": NEVER, "listen_conninfo": site.url}
    with site.running({"work": RunRecord()}, **options) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)
        assert site.kill_connections("gw:listen") == 1
        running.recorded.wait_for(PoolListening, count=2)
        site.fill(1)
        running.recorded.wait_for(JobCompleted, count=2)

    assert len(running.recorded.of(PoolListenLost)) == 1
    assert len([each for each in running.log.of("warning") if "LISTEN" in each]) == 1


def test_results_of_jobs_survive_a_pooler_that_restarts(site: QueueFixture, bouncer: PgBouncer) -> None:
    gate = site.gate()
    site.fill(3)
    with site.running({"work": gate}, url=bouncer.url, poll_interval=ms(50)) as running:
        gate.wait_for(3)
        site.run(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and application_name like 'gw:%%'"
        )
        gate.open()
        running.recorded.wait_for(JobCompleted, count=3)
        wait_until(lambda: site.jobs() == [])


def test_the_doctor_notices_the_pooler_and_checks_everything_through_it(
    site: QueueFixture, bouncer: PgBouncer, gw: CliProgram
) -> None:
    ended = gw("doctor", "--connection", bouncer.url, "--json")
    found = {each["check"]: each for each in ended.json}

    assert "pooler" in found["pooler"]["message"]
    assert found["pooler"]["status"] == "warning"
    assert [each for each in found.values() if "not checked" in each["message"]] == []
    assert ended.code == 0


def test_a_client_that_only_reads_does_not_keep_the_poolers_other_clients_from_writing(
    site: QueueFixture, bouncer: PgBouncer
) -> None:
    for connections in (1, 2):
        with Client(bouncer.url, session_limits=SessionLimits(read_only=True), max_pool_size=connections) as reading:
            assert reading.jobs.get(1) is None

    with Client(bouncer.url) as writing:
        assert writing.add("work") is not None


def test_pauses_and_limits_hold_behind_a_pooler(
    site: QueueFixture, bouncer: PgBouncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_core.worker.pauses.POLL_SECONDS", 0.1)
    ran = RunRecord()
    site.client.limits.set("work", running=1, per_period=200, period=ms(1_000))
    site.client.pauses.pause("task:paused", "queue:slow")
    site.fill(20)
    site.fill(1, task="paused")
    site.fill(1, task="paused", queue="'slow'")

    with site.running({"work": ran, "paused": ran}, url=bouncer.url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(JobCompleted, count=20)
        assert site.client.pauses.pause("task:work", timeout=timedelta(seconds=DEADLINE)).unconfirmed == ()
        site.fill(1)
        site.client.pauses.resume("task:paused", "queue:slow")
        running.recorded.wait_for(JobCompleted, count=22)

    assert len(site.jobs()) == 1
