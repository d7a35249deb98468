"""History in a database whose publication has all tables, as for logical replication and upgrades without downtime."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from support.databases import install_schema
from support.queue_fixture import QueueFixture
from support.shell import Shell
from support.waiting import wait_until

from gw_core.errors import DatabaseError, TransientDatabaseError
from gw_core.front_ends import CheckStatus, MaintenanceFailed

WEEK = timedelta(days=7)
WITHOUT_IDENTITY = """
select relname::text from pg_class
 where relnamespace = 'graphile_worker'::regnamespace and relkind in ('r', 'p')
   and relreplident <> 'f' and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)
"""


@pytest.fixture
def published(own_site: QueueFixture) -> Iterator[QueueFixture]:
    """A queue whose tables are all published."""
    own_site.run("create publication everything for all tables")
    yield own_site
    own_site.client.history.record_others(None)
    own_site.run("drop publication everything")


def in_default(site: QueueFixture) -> int:
    return int(site.value("select count(*) from _private_gw_history_default"))


def record_a_job_without_partition(site: QueueFixture, period: timedelta) -> None:
    """Let a job be ended by SQL, so that no worker has made the partition for its row."""
    site.client.history.record_others(period)
    site.run("select complete_jobs(array[%s])", site.add("other"))
    assert in_default(site) == 1


def test_every_table_has_a_key_or_a_replica_identity(own_site: QueueFixture) -> None:
    own_site.fill(1)
    with own_site.running({"work": lambda payload: None}, history=WEEK):
        wait_until(lambda: own_site.value("select count(*) from _private_gw_history") == 1)

    assert own_site.value("select count(*) from pg_inherits where inhparent = '_private_gw_history'::regclass") > 1
    assert own_site.rows(WITHOUT_IDENTITY) == []


def test_rows_move_to_a_partition_that_is_made_later(published: QueueFixture) -> None:
    record_a_job_without_partition(published, WEEK)
    with published.running({"work": lambda payload: None}, history=WEEK) as running:
        wait_until(lambda: in_default(published) == 0, what="the row to move")

    assert published.value("select count(*) from _private_gw_history") == 1
    assert running.recorded.of(MaintenanceFailed) == []


def expire(site: QueueFixture, shell: Shell) -> None:
    """Clean up until the row has expired."""

    def is_expired() -> bool:
        ended = shell.gw("cleanup", "expired-history", "--yes")
        assert ended.code == 0, ended.err
        return in_default(site) == 0

    wait_until(is_expired, what="the row to expire", every=0.2)


def test_expired_rows_are_deleted(published: QueueFixture, tmp_path: Path) -> None:
    record_a_job_without_partition(published, timedelta(seconds=1))

    expire(published, Shell(tmp_path, database=published.url))


def test_a_lasting_error_is_not_called_temporary_and_the_doctor_names_its_cause(
    published: QueueFixture, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, database=published.url)
    record_a_job_without_partition(published, timedelta(seconds=1))
    published.run("alter table _private_gw_history_default replica identity nothing")

    ended = shell.gw("cleanup", "expired-history", "--yes")
    (found,) = [each for each in published.client.doctor.findings() if each.check == "replication"]

    assert ended.code == 1
    assert ended.err == (
        'gw: PostgreSQL rejected the statement: cannot delete from table "_private_gw_history_default" because it does '
        "not have a replica identity and publishes deletes\n"
    )
    assert found.status is CheckStatus.ERROR
    assert "_private_gw_history_default is published without a replica identity" in found.message
    assert found.fix is not None
    published.run(found.fix)
    expire(published, shell)


@pytest.mark.parametrize(
    ("state", "is_temporary"),
    [("55000", False), ("55P02", False), ("25001", False), ("55006", True), ("55P03", True), ("40001", True)],
)
def test_errors_that_last_are_not_temporary(site: QueueFixture, state: str, is_temporary: bool) -> None:
    with psycopg.connect(site.url) as conn:
        conn.execute(
            "create function pg_temp.fail() returns trigger language plpgsql as "
            f"$$begin raise sqlstate '{state}' using message = 'trouble'; end$$".encode()
        )
        conn.execute(
            "create trigger fail before insert on graphile_worker._private_jobs execute function pg_temp.fail()"
        )
        with pytest.raises(DatabaseError) as caught:
            site.client.add("work", conn=conn)
        conn.rollback()

    assert isinstance(caught.value, TransientDatabaseError) is is_temporary


def test_an_installed_schema_with_partitions_is_upgraded(own_site: QueueFixture) -> None:
    own_site.fill(1)
    own_site.run_once({"work": lambda payload: None}, history=WEEK)
    for (table,) in own_site.rows(
        "select oid::regclass::text from pg_class where relname like '%%gw_history%%' and relkind in ('r', 'p')"
    ):
        own_site.run(f"alter table {table} replica identity default")
    own_site.run("delete from _private_gw_migrations where id = 5")

    report = install_schema(own_site.url)

    assert [step.name for step in report.applied] == ["gw_0005_history_functions"]
    assert own_site.rows(WITHOUT_IDENTITY) == []
