"""The roles that `gw grant` makes can do their part and no more; the commands are those of docs/guide/security.md."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from threading import Timer
from typing import Any
from uuid import uuid4

import attacks
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.databases import Databases, new_database
from support.queue_fixture import ms
from support.recovery_fixture import RecoveryFixture
from support.shell import CliResult, InProcessShell, Shell
from support.waiting import wait_until

from gw_core import AsyncClient, Client, JobContext, JobKeyMode, JobSpec, TaskRegistry, WorkerSettings, run_once
from gw_core.domain.rules.roles import FUNCTIONS_OF_RUST, RIGHTS
from gw_core.events import JobCompleted
from gw_core.front_ends import LockTimeoutError, MaintenanceFailed, RoleKind
from gw_core.postgres.connection.statements import query, sql_folder

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "security.md").read_text("utf-8")
BLOCKS = re.findall(r"```(?:sql\n-- as (a superuser|queue_owner)|(sh))\n(.*?)```", PAGE, re.DOTALL)
ROLES = ("queue_owner", *(f"queue_{kind}" for kind in RoleKind), "queue_caller")
KINDS = tuple(f"queue_{kind}" for kind in RoleKind)


LAST_HEARTBEAT = "select last_heartbeat_at from _private_gw_workers"


class Site:
    """A database with the roles of the page, under names of these tests' own; `gw` is the program as one of them."""

    def __init__(self, url: str, mark: str, folder: Path, within: Callable[..., Shell]) -> None:
        self.url, self._mark, self._folder, self._within = url, mark, folder, within

    def named(self, text: str) -> str:
        return re.sub(
            rf"\bqueue_(?={'|'.join(each.partition('_')[2] for each in ROLES)})", f"schema_{self._mark}_", text
        )

    def run(self, statement: str, role: str | None = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.as_role(role) if role else self.url, autocommit=True) as connection:
            cursor = connection.execute(self.named(statement).encode())
            return cursor.fetchall() if cursor.description else []

    def as_role(self, role: str) -> str:
        return make_conninfo(self.url, options=f"-c role={self.named(role)}")

    def gw(self, line: str, role: str) -> CliResult:
        words = self.named(line).split()
        shell = Shell if words[0] == "run" else self._within
        return shell(self._folder, database=self.as_role(role)).gw(*words)

    def failing(self, lines: tuple[str, ...], role: str) -> dict[str, CliResult]:
        ended = {line: self.gw(line, role) for line in lines}
        return {line: each for line, each in ended.items() if each.code != 0}


@contextmanager
def original(there: Databases, folder: Path) -> Iterator[tuple[str, str]]:
    """Make the roles and a database by the page, one block after the other; yield its name and the roles' mark."""
    mark = uuid4().hex[:10]
    with new_database(there) as url:
        site = Site(url, mark, folder, Shell)
        for author, is_commands, text in BLOCKS:
            if is_commands:
                assert site.failing(tuple(re.findall(r"^gw (.*)$", text, re.MULTILINE)), "queue_owner") == {}
            else:
                site.run(text, None if author == "a superuser" else author)
        yield str(conninfo_to_dict(url)["dbname"]), mark
    with psycopg.connect(there.conninfo, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"drop role if exists schema_{mark}_{role.partition('_')[2]}".encode())


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Databases], tuple[str, str]]]:
    """Return what makes them once for each server."""
    with ExitStack() as made:
        yield cache(lambda there: made.enter_context(original(there, tmp_path_factory.mktemp("page"))))


@pytest.fixture
def site(
    originals: Callable[[Databases], tuple[str, str]],
    there: Databases,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """A copy of the database."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload):\n    pass\n")
    (tmp_path / "crontab").write_text("0 4 * * * nightly\n")
    template, mark = originals(there)
    with new_database(there, template) as url:
        yield Site(url, mark, tmp_path, partial(InProcessShell, capsys=capsys, monkeypatch=monkeypatch))


def test_the_doctor_finds_nothing_wrong_with_a_role(site: Site) -> None:
    for kind in RoleKind:
        for line in ("doctor --json", f"doctor --json --as {kind}"):
            ended = site.gw(line, f"queue_{kind}")

            assert (ended.code, {each["status"] for each in json.loads(ended.out)}) == (0, {"ok"}), ended
            assert f"{kind}" in ended.out


def test_the_doctor_names_the_grant_that_a_role_lacks(site: Site) -> None:
    ended = site.gw("doctor --json --as operator", "queue_viewer")

    [found] = [each for each in json.loads(ended.out) if each["check"] == "rights"]
    assert (ended.code, found["status"]) == (7, "error")
    assert "which an operator needs" in found["message"]
    assert found["fix"] == site.named("as the queue's owner: gw grant operator queue_viewer")


def test_the_doctor_names_each_function_that_a_role_may_not_execute(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_core.domain.reports.diagnosis.some", ", ".join)  # which names the first ones
    tried = 0
    for kind, rights in RIGHTS.items():
        role = f"queue_{kind}"
        names = [name for name, each in rights.items() if each == ("execute",) and name not in FUNCTIONS_OF_RUST]
        for name in names:
            site.run(f"revoke execute on function graphile_worker.{name} from public, {role}")

        with Client(site.as_role(role)) as client:
            [found] = [each for each in client.doctor.findings() if each.check == "rights"]
        if names:
            assert found.status == "error"
            assert set(names) - set(re.findall(r"execute on (\w+)", found.message)) == set()
            assert found.fix == site.named(f"as the queue's owner: gw grant {kind} {role}")
        tried += len(names)
    assert tried > 20


@pytest.mark.parametrize("is_hidden", [True, False], ids=["hidden", "denied"])
def test_the_remedy_is_the_grant_that_the_command_needs(site: Site, is_hidden: bool) -> None:
    if is_hidden:
        site.run("grant usage on schema graphile_worker to queue_caller")
        site.run("grant select on all tables in schema graphile_worker to queue_caller")

    for line, kind in (("add mail", "adder"), ("complete 1", "operator"), ("doctor --as viewer", "viewer")):
        ended = site.gw(line, "queue_caller")

        assert ended.code in (4, 7), line
        assert site.named(f"gw grant {kind} queue_caller") in ended.out + ended.err


def test_every_role_is_complete(site: Site) -> None:
    ended = site.gw("grants --json", "queue_viewer")

    assert {(each["role"], each["kind"]): each["missing"] for each in json.loads(ended.out)} == {
        (site.named(f"queue_{kind}"), str(kind)): [] for kind in RoleKind
    }


WITHOUT_EFFECT = {"limit_index_build", "limit_index_drop", "record_others_off"}
"""They would change something of which there is nothing here."""
ADDING = {
    "add_job",
    "add_job_unless_there",
    "add_jobs",
    "add_waiting_job",
    "add_unique_jobs",
    "add_expiring_job",
    "register_tasks",
    "restore_names",
    *("restore_job", "restore_note", "restore_once"),
}
CHANGING_JOBS = {
    *("action_fail", "action_reschedule", "claim_unqueued_jobs", "sweep_recover_jobs"),
    *("lock_expected_jobs", "lock_selected_jobs", "row_locked_jobs"),
    "action_reschedule_waiting",
}
"""What the page admits: with SQL of its own, an adder can change jobs, because a key replaces one."""
OF_OPERATORS = {"cancel_request", "cleanup_delete", "delete_cron_item", "limit_delete", "limit_set", "pause_set"}
OF_WORKERS = {
    *("heartbeat", "record_statistics", "renew_locks", "step_begin", "step_save", "end_steps"),
    *("expire_jobs", "forget_expiries"),
    *("register_cron_items", "schedule_cron_items"),
}
OF_OWNERS = {"record_others_on"}


def test_a_role_may_run_the_statements_of_its_kind_and_no_others(site: Site) -> None:
    names = {path.stem for path in Path(str(sql_folder()), "queries").glob("*.sql")} - {"doctor_distributed_tables"}
    with psycopg.connect(site.as_role("queue_owner")) as connection:
        connection.read_only = True
        changes = {name for name in names if fails(connection, name, psycopg.errors.ReadOnlySqlTransaction)}
    changes = changes - WITHOUT_EFFECT | {"cleanup_lock", "lock_jobs_table", "make_history_partitions"}

    denied: dict[RoleKind, set[str]] = {}
    for kind in RoleKind:
        with psycopg.connect(site.as_role(f"queue_{kind}")) as connection:
            denied[kind] = {name for name in names if fails(connection, name, psycopg.errors.InsufficientPrivilege)}

    assert denied[RoleKind.WORKER] == OF_OPERATORS | OF_OWNERS | {"cleanup_lock"}
    assert denied[RoleKind.OPERATOR] == OF_WORKERS | OF_OWNERS | {"make_history_partitions"}
    assert denied[RoleKind.VIEWER] == changes
    assert changes - denied[RoleKind.ADDER] == ADDING | CHANGING_JOBS | {"lock_jobs_table"}
    assert changes - denied[RoleKind.READER] == set()


def fails(connection: psycopg.Connection[Any], name: str, kind: type[psycopg.Error]) -> bool:
    """Whether a statement fails so; PostgreSQL checks both before it reads values."""
    text = query(name, "graphile_worker", SELECTION="true")
    values: dict[str, Any] = dict.fromkeys(re.findall(r"%\((\w+)\)s", text))
    if name == "add_unique_jobs":  # its function writes, and for no job it is not called
        values["jobs"] = '[{"job": {"task": "mail"}, "unique_key": "k", "period_seconds": 1}]'
    try:
        connection.execute(text.encode(), values)
    except kind:
        return True
    except psycopg.Error:
        return False
    finally:
        connection.rollback()
    return False


WORKER = (
    "add mail",
    "add mail --job-key k",
    "list",
    "reschedule 1 --run-at now",
    "remove k",
    "fail 1",
    "retry 1",
    "complete 1",
    "sweep",
    "workers",
    "cron list --crontab crontab",
    "run --once --recover --history 1d --statistics 1h",
    "history",
)


def test_the_worker_runs_jobs_and_does_not_pause_limit_clean_up_or_migrate(site: Site) -> None:
    assert site.failing(WORKER, "queue_worker") == {}

    site.run("insert into graphile_worker._private_tasks (identifier) values ('unused')")
    for line in (
        "pause task:mail",
        "limit mail --off",
        "cleanup unused-tasks --yes",
        "cancel 9",
        "grant viewer queue_worker",
    ):
        assert site.gw(line, "queue_worker").code == 4, line
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        site.run("alter table graphile_worker._private_jobs add mine int", "queue_worker")


@pytest.mark.parametrize("right", ["select", "insert", "update"])
def test_a_step_that_its_role_could_not_keep_is_not_run(site: Site, right: str) -> None:
    ran: list[str] = []
    tasks = TaskRegistry()

    @tasks.task("pay")
    def pay(payload: object, context: JobContext) -> None:
        context.step("charge", ran.append, "charge")

    site.run("select graphile_worker.add_job('pay')")
    site.run(f"revoke {right} on graphile_worker._private_gw_steps from queue_worker")
    failing = run_once(site.as_role("queue_worker"), tasks=tasks)
    assert failing.failed == 1
    assert ran == []

    site.gw("grant worker queue_worker", "queue_owner")
    site.gw("retry 1", "queue_owner")
    assert run_once(site.as_role("queue_worker"), tasks=tasks).completed == 1
    assert ran == ["charge"]


def test_a_step_that_has_run_waits_for_the_right_to_be_kept(site: Site) -> None:
    ran: list[str] = []
    tasks = TaskRegistry()

    def charge() -> None:
        ran.append("charge")
        site.run("revoke insert on graphile_worker._private_gw_steps from queue_worker")
        site_is_repaired.start()

    @tasks.task("pay")
    def pay(payload: object, context: JobContext) -> None:
        context.step("charge", charge)

    site_is_repaired = Timer(0.3, site.run, ("grant insert on graphile_worker._private_gw_steps to queue_worker",))
    site.run("select graphile_worker.add_job('pay')")
    assert run_once(site.as_role("queue_worker"), tasks=tasks).completed == 1
    assert ran == ["charge"]


def test_a_worker_without_the_right_to_history_settles_its_jobs_at_its_end(site: Site) -> None:
    tasks = TaskRegistry()
    tasks.register("mail", lambda payload: None)
    tasks.register("boom", lambda payload: 1 / 0)
    site.run("select graphile_worker.add_job(task) from unnest(array['mail', 'boom', 'mail']) as task")
    site.run("revoke insert on graphile_worker._private_gw_history from queue_worker")

    settings = WorkerSettings(history=timedelta(days=1))
    result = run_once(site.as_role("queue_worker"), tasks=tasks, settings=settings)

    assert (result.completed, result.failed, result.exit_code) == (2, 1, 0)
    assert site.run("select attempts, locked_at from graphile_worker._private_jobs") == [(1, None)]
    assert site.run("select 1 from graphile_worker._private_gw_history") == []


@pytest.mark.parametrize(
    "right",
    [
        "select on graphile_worker._private_gw_claim_rules",
        "delete on graphile_worker._private_gw_expiring",
        "update on graphile_worker._private_gw_limits",
    ],
)
def test_a_single_run_without_a_right_ends_and_names_it(site: Site, right: str) -> None:
    assert site.gw("limit limited --running 1", "queue_operator").code == 0
    tasks = TaskRegistry()
    tasks.register("limited", lambda payload: None)
    site.run("select graphile_worker.add_job('limited')")
    site.run(f"revoke {right} from queue_worker")

    result = run_once(site.as_role("queue_worker"), tasks=tasks)

    assert result.exit_code == 4, result
    assert f"lacks {right}".replace("graphile_worker.", "") in result.reason
    assert site.named("gw grant worker queue_worker") in result.reason


@pytest.mark.parametrize("table", ["_private_gw_cancellations", "_private_gw_claim_rules", "migrations"])
def test_a_heartbeat_is_written_without_the_right_to_what_it_reads(site: Site, table: str) -> None:
    with RecoveryFixture(site.url) as queue:
        gate = queue.gate()
        queue.add()
        worker, quick = site.as_role("queue_worker"), {"heartbeat_interval": ms(20), "sweep_threshold": ms(60_000)}
        with queue.running({"work": gate}, url=worker, **quick) as running:
            gate.wait_for(1)
            site.run(f"revoke select on graphile_worker.{table} from queue_worker")
            running.recorded.wait_for(MaintenanceFailed)
            for _ in range(3):
                before = queue.value(LAST_HEARTBEAT)
                wait_until(lambda at=before: queue.value(LAST_HEARTBEAT) > at, what="a heartbeat")
            site.gw("grant worker queue_worker", "queue_owner")
            gate.open()
            running.recorded.wait_for(JobCompleted)

    warned = [each for each in running.log.of("warning") if "heartbeat" in each]
    assert len(warned) == 1, warned
    assert f"select on {table}" in warned[0]
    assert site.named("gw grant worker queue_worker") in warned[0]


def test_a_limit_without_its_right_is_reported_once_and_holds_up_no_other_task(site: Site) -> None:
    assert site.gw("limit limited --running 1", "queue_operator").code == 0
    with RecoveryFixture(site.url) as queue:
        ran: list[str] = []
        tasks = {name: lambda payload, name=name: ran.append(name) for name in ("limited", "mail")}
        with queue.running(tasks, url=site.as_role("queue_worker"), concurrency=1) as running:
            site.run("revoke update on graphile_worker._private_gw_limits from queue_worker")
            site.run("select graphile_worker.add_job(task) from unnest(array['limited', 'mail']) as task")
            running.recorded.wait_for(MaintenanceFailed)
            for number in range(1, 21):
                running.recorded.wait_for(JobCompleted, count=number)
                site.run("select graphile_worker.add_job('mail')")
            assert set(ran) == {"mail"}
            site.gw("grant worker queue_worker", "queue_owner")
            wait_until(lambda: "limited" in ran, what="the job with a limit")

    [warned] = running.log.of("warning")
    assert "no jobs of task 'limited' are claimed" in warned
    assert "lacks update on _private_gw_limits" in warned
    assert site.named("gw grant worker queue_worker") in warned


def test_locks_are_renewed_without_the_right_to_note_their_starts(site: Site) -> None:
    with RecoveryFixture(site.url) as queue:
        gate = queue.gate()
        queue.add()
        worker = site.as_role("queue_worker")
        with queue.running({"work": gate}, url=worker, lock_renewal_interval=ms(20)) as running:
            gate.wait_for(1)
            site.run("revoke insert on graphile_worker._private_gw_renewed_locks from queue_worker")
            for _ in range(2):
                queue.run("update _private_jobs set locked_at = locked_at - interval '1 hour'")
                wait_until(lambda: queue.value("select locked_at > now() - interval '20 minutes' from _private_jobs"))
            gate.open()
            running.recorded.wait_for(JobCompleted)

    [warned] = [each for each in running.log.of("warning") if "gw-renew-locks" in each]
    assert "insert on _private_gw_renewed_locks" in warned
    assert site.named("gw grant worker queue_worker") in warned


OPERATOR = (
    "add mail",
    "add mail --job-key k",
    "reschedule 1 --run-at now",
    "remove k",
    "fail 1",
    "retry 1",
    "pause task:mail queue:q flag:f all",
    "resume task:mail queue:q flag:f all",
    "limit mail --running 1 --rate 10/s",
    "limit mail --off",
    "sweep",
    "cleanup failed-jobs unused-tasks unused-queues expired-history --yes",
    "cron list --crontab crontab",
    "cron run nightly --crontab crontab",
    "tui --once",
)


def test_the_operator_changes_everything_but_no_rights_and_no_tables(site: Site) -> None:
    assert site.failing(OPERATOR, "queue_operator") == {}

    for line in ("record-others 1d", "grant worker queue_operator", "revoke queue_viewer"):
        assert site.gw(line, "queue_operator").code == 4, line
    for statement in (
        "update graphile_worker._private_gw_history set state = 'completed'",
        "update graphile_worker._private_gw_migrations set name = 'x'",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            site.run(statement, "queue_operator")


def test_the_operator_lifts_and_replaces_a_limit_by_field_of_the_owner(site: Site) -> None:
    for line in ("limit mail --off", "limit mail --running 2"):
        assert site.gw("limit mail --running 1 --field tenant", "queue_owner").code == 0

        ended = site.gw(line, "queue_operator")

        assert (ended.code, ended.err) == (0, ""), ended
    assert site.run("select most_running, field from graphile_worker._private_gw_limits") == [(2, None)]

    before = site.run("select * from graphile_worker._private_gw_limits")
    ended = site.gw("limit mail --running 1 --field other", "queue_operator")
    assert ended.code == 4
    assert site.run("select * from graphile_worker._private_gw_limits") == before

    assert site.gw("limit mail --running 1", "queue_owner").code == 0
    assert site.run("select 1 from pg_class where relname ~ '^jobs_gw_field_'") == []


VIEWER = (
    "list",
    "show 1",
    "stats",
    "queues",
    "tasks",
    "workers",
    "pauses",
    "limits",
    "groups list",
    "history",
    "tui --once",
)


def test_the_viewer_reads_and_changes_nothing(site: Site) -> None:
    site.run("select graphile_worker.add_job('mail')")

    assert site.failing(VIEWER, "queue_viewer") == {}
    assert "mail" in site.gw("list", "queue_viewer").out
    assert site.gw("fail 1", "queue_viewer").code == 4
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        site.run("select graphile_worker.add_job('mail')", "queue_viewer")


def test_the_adder_adds_in_every_way(site: Site) -> None:
    url = site.as_role("queue_adder")
    with Client(url) as client:
        client.check_schema()
        client.add("mail", {"n": 1}, queue_name="q", flags=["f"], run_at=timedelta(hours=1))
        for mode in JobKeyMode:
            client.add("mail", {"n": 2}, job_key="k", job_key_mode=mode)
        client.add_many([JobSpec(task="mail"), JobSpec(task="mail", job_key="k")])
        client.add_batch("mail", [1, 2], job_key="batch")
        client.groups.add([JobSpec(task="mail"), JobSpec(task="mail")], then=JobSpec(task="report"))

    async def add() -> None:
        async with AsyncClient(url) as client:
            await client.add("mail", job_key="k")
            await client.groups.add([JobSpec(task="mail")], then=JobSpec(task="report"))

    asyncio.run(add())
    site.run("select graphile_worker.add_job('mail', job_key => 'k')", "queue_adder")
    assert site.failing(("add mail --payload {}", "add mail --job-key k"), "queue_adder") == {}

    assert site.run("select count(*), count(key) from graphile_worker._private_jobs") == [(10, 2)]
    assert site.run("select count(*) from graphile_worker._private_gw_waiting") == [(2,)]


def test_the_adder_does_nothing_else(site: Site) -> None:
    site.run("select graphile_worker.add_job('mail', job_key => 'k')")
    lines = ("remove k", "complete 1", "pause task:mail", "limit mail --running 1", "cancel 1", "sweep", "workers")
    assert {
        line: site.gw(line, "queue_adder").code for line in (*lines, "history", "cron forget x", "groups cancel 1")
    } == (dict.fromkeys((*lines, "history", "cron forget x", "groups cancel 1"), 4))

    # What the page admits: rights are those of tables.
    assert site.run("select key from graphile_worker._private_jobs", "queue_adder") == [("k",)]
    for statement in (
        "delete from graphile_worker._private_jobs",
        "update graphile_worker._private_job_queues set locked_by = 'me'",
        "delete from graphile_worker._private_tasks",
        "select * from graphile_worker._private_gw_history",
        "select * from graphile_worker._private_gw_workers",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            site.run(statement, "queue_adder")


def test_the_reader_and_the_caller_of_a_function_have_neither_payloads_nor_tables(site: Site) -> None:
    assert site.run("select app.send_receipt(7)", "queue_caller") == [(1,)]

    assert site.run("select payload::text from graphile_worker._private_jobs") == [('{"order" : 7}',)]
    assert site.run("select id from graphile_worker.jobs", "queue_reader") == [(1,)]
    for role, statement in (
        ("queue_reader", "select payload from graphile_worker._private_jobs"),
        ("queue_reader", "select graphile_worker.add_job('mail')"),
        ("queue_caller", "select graphile_worker.add_job('mail')"),
        ("queue_caller", "select * from graphile_worker.jobs"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            site.run(statement, role)

    assert_the_caller_runs_no_code_of_its_own_as_the_owner(site)


# -- the attacks that a review tried, by every role that `gw grant` makes ----------------------------------------------


def test_no_role_gains_the_owner_s_rights(site: Site) -> None:
    for kind in RoleKind:
        for attack in (attacks.run_code_as_the_owner, lambda session: attacks.forge_history(session, 1, 1)):
            denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function")
            with psycopg.connect(site.as_role(f"queue_{kind}")) as session, denied:
                attack(session)


def test_no_role_s_function_in_public_runs_in_an_add_of_a_superuser(site: Site) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    for kind in RoleKind:
        role = site.named(f"queue_{kind}")
        with psycopg.connect(site.as_role(role), autocommit=True) as session:
            attacks.plant_better_functions(session, role)

        with Client(site.url) as client, closing(psycopg2.connect(site.url)) as connection:
            client.add("mail", {}, run_at=timedelta(seconds=5), conn=connection)
            connection.commit()

        assert site.run(f"select rolsuper from pg_roles where rolname = '{role}'") == [(False,)]
        site.run("drop function public.unnest(bigint[])")
        for parameter in ("numeric", "integer", "text"):
            site.run(f"drop function public.make_interval({parameter})")


def test_only_a_role_that_may_sweep_is_waited_for_by_a_sweep(site: Site) -> None:
    for kind in RoleKind:
        with (
            RecoveryFixture(site.url) as queue,
            psycopg.connect(make_conninfo(site.url, user=site.named(f"queue_{kind}")), autocommit=True) as session,
        ):
            queue.locked_by(queue.dead_worker())
            session.execute("select pg_advisory_lock(1196905043, 1398228304)")
            if kind in (RoleKind.WORKER, RoleKind.OPERATOR):
                with pytest.raises(LockTimeoutError, match=f"process {session.info.backend_pid} of role"):
                    queue.sweep()
                session.execute("select pg_advisory_unlock_all()")
            assert queue.sweep().jobs == 1, kind


def assert_the_caller_runs_no_code_of_its_own_as_the_owner(site: Site) -> None:
    site.run("create schema evil authorization queue_caller; grant usage on schema evil to public")
    trap = (
        "create function evil.json_build_object(text, bigint) returns json language plpgsql as "
        "$$ begin raise exception 'as %', current_user; end $$; set search_path = evil, pg_catalog; "
    )
    site.run(trap + "select app.send_receipt(7)", "queue_caller")

    site.run("alter function app.send_receipt(bigint) reset all")
    with pytest.raises(psycopg.errors.RaiseException, match="_owner"):
        site.run("set search_path = evil, pg_catalog; select app.send_receipt(7)", "queue_caller")
