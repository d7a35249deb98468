"""Rows that row security hides are an error of every command and every method that reads them, and never "nothing"."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest
from psycopg.conninfo import make_conninfo
from support.cli_program import every_command
from support.jobs_in_states import Queue
from support.shell import CliResult, InProcessShell
from support.waiting import wait_until

from gw_core import (
    AsyncClient,
    Client,
    JobContext,
    JobSpec,
    RetryAfter,
    Runner,
    Selection,
    TaskRegistry,
    WorkerSettings,
    run_once,
)
from gw_core.domain.rules.roles import OF_RUST, RECORD, TABLES
from gw_core.errors import GraphileWorkerError, PermissionDeniedError
from gw_core.events import JobCompleted, JobLockLost, PoolConnectionLost
from gw_core.front_ends import CleanupTarget, FrontEnd, MaintenanceFailed, NameKind, QueueSize, RoleKind

HIDEABLE: Final = [each for each in TABLES if each not in (OF_RUST, "migrations")]
"""The tables with row security."""

KINDS: Final = (RoleKind.WORKER, RoleKind.OPERATOR)

# What reads rows of the queue, as a line that shows as much as possible. A new command belongs here or below.
READING: Final = {
    "gw list": ("list --payload",),
    "gw count": ("count", "count state:failed"),
    "gw show": ("show 1", "show 9001"),
    "gw history": ("history --result", "history --count"),
    "gw actions": ("actions", "actions 1"),
    "gw record-others": ("record-others",),
    "gw stats": ("stats --tasks", "stats --exact"),
    "gw queues": ("queues",),
    "gw pauses": ("pauses",),
    "gw limits": ("limits",),
    "gw groups list": ("groups list",),
    "gw tasks": ("tasks",),
    "gw tui": ("tui --once",),
    "gw workers": ("workers",),
    "gw sweep": ("sweep --dry-run",),
    "gw unlock": ("unlock pool-1 --dry-run",),
    "gw cleanup": ("cleanup failed-jobs unused-tasks unused-queues --dry-run",),
    "gw cron list": ("cron list --crontab crontab",),
    "gw complete": ("complete --all --dry-run",),
    "gw fail": ("fail --all --dry-run",),
    "gw reschedule": ("reschedule --all --run-at now --dry-run",),
    "gw retry": ("retry --all --dry-run",),
}
CHANGING: Final = {
    "gw remove": ("remove unknown",),
    "gw cancel": ("cancel 9999 --timeout 0s",),
    "gw resume": ("resume task:none",),
    "gw limit": ("limit none --off",),
    "gw groups cancel": ("groups cancel 9999",),
    "gw cron forget": ("cron forget none",),
}
"""Those that say that there is nothing to change."""
OTHERS: Final = {
    "gw doctor": "see below",
    "gw health": "asks whether the jobs table answers; prints how long that took",
    **dict.fromkeys(("gw grants", "gw migrate"), "read the catalog and report that policies are missing"),
    **dict.fromkeys(("gw add", "gw pause", "gw cron run"), "adds a row, which PostgreSQL rejects"),
    **dict.fromkeys(("gw run", "gw dev"), "asks for everything at its start, see below"),
    **dict.fromkeys(("gw grant", "gw revoke"), "belong to the owner"),
    **dict.fromkeys(("gw cron parse", "gw cron validate", "gw cron next"), "read files"),
    **dict.fromkeys(
        ("gw bench", "gw init", "gw completion", "gw config show", "gw config schema", "gw sql"), "read no queue"
    ),
}


def _count(target: CleanupTarget, client: Client) -> int:
    return client.cleanup.count(target)


def _delete(target: CleanupTarget, client: Client) -> int:
    return client.cleanup.delete(target)


METHODS: Final[Mapping[str, Callable[[Client], Any]]] = {
    "front end.snapshot": lambda client: FrontEnd(client).snapshot(),
    "front end.read_background": lambda client: _counted(FrontEnd(client)),
    "counts": lambda client: client.counts(),
    "queues.list": lambda client: client.queues.list(),
    "front end.counts": lambda client: FrontEnd(client).counts(),
    "front end.count_queue": lambda client: FrontEnd(client).count_queue("q"),
    "tasks.list": lambda client: client.tasks.list(),
    "tasks.statistics_over_time": lambda client: client.tasks.statistics_over_time().points,
    "tasks.statistics": lambda client: client.tasks.statistics(),
    "result": lambda client: _outcome(lambda: client.result(9001, timeout=0)),
    "groups.list": lambda client: client.groups.list(),
    "groups.cancel": lambda client: client.groups.cancel(9999),
    "remove": lambda client: client.remove("unknown"),
    "front end.names": lambda client: [FrontEnd(client).names(kind) for kind in NameKind],
    "front end.tasks_of": lambda client: FrontEnd(client).tasks_of("state:failed", most=3),
    "cron.list": lambda client: client.cron.list(),
    "cron.forget": lambda client: client.cron.forget("none"),
    "check_schema": lambda client: client.check_schema(),
    "migration_plan": lambda client: client.migration_plan().steps,
    "jobs.list": lambda client: client.jobs.list(),
    "jobs.count": lambda client: client.jobs.count("state:failed"),
    "jobs.get": lambda client: client.jobs.get(1),
    "jobs.steps": lambda client: client.jobs.steps(1),
    "jobs.show": lambda client: client.jobs.show(1),
    "front end.queue_sizes": lambda client: FrontEnd(client).queue_sizes(),
    "front end.ranked_queues": lambda client: FrontEnd(client).ranked_queues([QueueSize("q", 1, 1)]),
    "front end.at_server_time": lambda client: FrontEnd(client).at_server_time("task:mail created_at:<-1h"),
    "jobs.complete": lambda client: client.jobs.complete([9999]),
    "jobs.fail": lambda client: client.jobs.fail([9999]),
    "jobs.retry": lambda client: client.jobs.retry([9999]),
    "jobs.reschedule": lambda client: client.jobs.reschedule([9999]),
    "jobs.cancel": lambda client: client.jobs.cancel([9999], timeout=timedelta(0)),
    "workers.list": lambda client: client.workers.list(),
    "workers.locks": lambda client: client.workers.locks(["pool-1"]),
    "workers.sweep": lambda client: client.workers.sweep(dry_run=True),
    "workers.unlock": lambda client: client.workers.unlock(["nobody"]),
    "history.list": lambda client: client.history.list(),
    "history.count": lambda client: client.history.count(),
    "history.attempts": lambda client: client.history.attempts(9001),
    "history.status": lambda client: client.history.status(),
    "history.actions": lambda client: client.history.actions(),
    "limits.list": lambda client: client.limits.list(),
    "limits.remove": lambda client: client.limits.remove("none", timeout=timedelta(0)),
    "pauses.list": lambda client: client.pauses.list(),
    "pauses.resume": lambda client: client.pauses.resume("task:none", timeout=timedelta(0)),
    **{f"cleanup.count, {target}": partial(_count, target) for target in CleanupTarget},
    "cleanup.count, old ones": lambda client: client.cleanup.count("failed-jobs", older_than=timedelta(days=1)),
}
"""By name. Calls of one method are apart, because the first error would hide the others."""
DELETING: Final[Mapping[str, Callable[[Client], Any]]] = {
    **{f"cleanup.delete, {target}": partial(_delete, target) for target in CleanupTarget},
    "cleanup.delete, old ones": lambda client: client.cleanup.delete("failed-jobs", older_than=timedelta(days=1)),
    "cleanup.delete_in_batches": lambda client: list(client.cleanup.delete_in_batches("failed-jobs")),
}
"""They would delete what the others read."""
OTHER_METHODS: Final = {
    *("add", "try_add", "add_many", "add_batch", "groups.add", "pauses.pause", "limits.set", "jobs.restore"),
    *("migrate", "migration_script", "close", "is_embedded", "schema", "events", "sharded", "jobs.in_batches"),
    *("doctor.findings", "doctor.health_check", "doctor.lock_waits", "history.expire", "history.record_others"),
    *("grants.grant", "grants.revoke", "grants.list", "grants.statements", "grants.revoke_statements"),
    *(
        "front end.place",
        "front end.cancellable",
        "front end.add_json",
        "front end.remove_expected",
        "front end.listen",
        "front end.cancel_statements",
    ),
    *("front end.examine", "front end.connection", "front end.end_session", "front end.ping"),
}
"""Those that add, need no rows, or are tested elsewhere."""
ASYNC_METHODS: Final[Mapping[str, Callable[[AsyncClient], Any]]] = {
    "result": lambda client: _async_outcome(client),
    "groups.list": lambda client: client.groups.list(),
    "groups.cancel": lambda client: client.groups.cancel(9999),
    "remove": lambda client: client.remove("unknown"),
    "jobs.get": lambda client: client.jobs.get(1),
    "jobs.steps": lambda client: client.jobs.steps(1),
    "jobs.complete": lambda client: client.jobs.complete([9999]),
    "jobs.fail": lambda client: client.jobs.fail([9999]),
    "jobs.reschedule": lambda client: client.jobs.reschedule([9999]),
    "limits.list": lambda client: client.limits.list(),
    "limits.remove": lambda client: client.limits.remove("none", timeout=timedelta(0)),
    "pauses.list": lambda client: client.pauses.list(),
    "pauses.resume": lambda client: client.pauses.resume("task:none", timeout=timedelta(0)),
}


def _counted(front_end: FrontEnd) -> Any:
    front_end.snapshot()
    front_end.read_background()
    return front_end.snapshot()


def _outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except PermissionDeniedError:
        raise
    except GraphileWorkerError as error:
        return str(error)


async def _async_outcome(client: AsyncClient) -> Any:
    try:
        return await client.result(9001, timeout=0)
    except PermissionDeniedError:
        raise
    except GraphileWorkerError as error:
        return str(error)


def test_every_command_is_judged_here() -> None:
    assert set(every_command()) == set(READING) | set(CHANGING) | set(OTHERS)


def test_every_method_is_judged_here() -> None:
    client = Client("postgres://localhost/none")
    parts = {name: getattr(client, name) for name in _public(Client) if _is_part(Client, name)}
    methods = {name for name in _public(Client) if name not in parts}
    methods |= {f"{name}.{each}" for name, part in parts.items() for each in _public(type(part))}
    methods |= {f"front end.{each}" for each in _public(FrontEnd)}

    assert methods == {name.partition(",")[0] for name in (*METHODS, *DELETING)} | OTHER_METHODS
    assert set(ASYNC_METHODS) <= set(METHODS)


def _public(kind: type[Any]) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


def _is_part(kind: type[Any], name: str) -> bool:
    return type(inspect.getattr_static(kind, name)).__name__ == "cached_property"


# -- a queue with one of everything, and a role that may change everything ---------------------------------------------


class Site:
    """A queue, and the role of an operator from which tables can be hidden."""

    def __init__(self, queue: Queue, role: str) -> None:
        self.queue, self.role = queue, role
        self.url = make_conninfo(queue.url, options=f"-c role={role}")

    def hide(self, *tables: str) -> None:
        """Drop the policies of tables: the role keeps its privileges and sees no row."""
        for name, table in self.queue.rows(
            "select polname::text, polrelid::regclass::text from pg_policy "
            "where polrelid = any(%s::text[]::regclass[])",
            [f"graphile_worker.{table}" for table in tables],
        ):
            self.queue.rows(f"drop policy {name} on {table}")

    @contextmanager
    def hidden(self, table: str) -> Iterator[None]:
        """Hide a table from the block."""
        self.hide(table)
        yield
        for kind in KINDS:
            self.queue.client.grants.grant(kind, self.role)


@pytest.fixture
def site(database_url: str, server: str) -> Iterator[Site]:
    role = f"schema_blind_{uuid4().hex[:12]}"
    with Queue(database_url) as queue:
        queue.rows(f"create role {role}")
        for kind in KINDS:
            queue.client.grants.grant(kind, role)
        _fill(queue)
        yield Site(queue, role)
        queue.rows(f"drop owned by {role}")
        queue.rows(f"drop role {role}")


def _fill(queue: Queue) -> None:
    queue.running(by="pool-1", queue_name="q", job_key="key")
    queue.running(task="other", by="gw-x-1-0123456789", queue_name="renewed")
    queue.failed("mail", queue_name="q")
    queue.backoff(flags=["f"])
    queue.scheduled()
    queue.heartbeat("pool-1", tasks=["mail"], ago="10000 seconds")
    queue.heartbeat("gw-x-1-0123456789", tasks=["mail", "other"])
    queue.rows("update _private_gw_workers set claim_rules_revision = 1000")  # so that nothing waits for it
    queue.rows(
        "insert into _private_gw_renewed_locks select locked_by, id, locked_at - interval '1 day', locked_at "
        "from _private_jobs where locked_by like 'gw-%%'"
    )
    queue.rows("insert into _private_known_crontabs values ('nightly', now(), now())")
    queue.client.pauses.pause("flag:f", timeout=timedelta(0))
    queue.client.limits.set("mail", running=4, per_period=10, period=timedelta(seconds=1), timeout=timedelta(0))
    queue.client.groups.add([JobSpec(task="mail")], then=JobSpec(task="last"))
    queue.rows(
        "insert into _private_gw_history (job_id, attempt, max_attempts, task, state, final, result, worker_id, "
        "created_at, started_at, finished_at, expires_at) values (9001, 1, 25, 'mail', 'completed', true, '1', "
        "'pool-1', now(), now(), now(), now() + interval '1 day')"
    )
    queue.rows(
        "insert into _private_gw_statistics values "
        "(date_trunc('minute', now()) - interval '9 minutes', 'mail', 'pool-1', 1, 0, 0, 0.1, '{1}', 1, 0.1)"
    )


TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.+Z-]*|\bPT?[\d.DTHMS]+|\b(\d+(\.\d+)? ?(ms|s|m|h|d|MB|kB))+\b")
OF_THE_SERVER: Final = {"counters", "total", "unclaimed"}
"""Figures of PostgreSQL's statistics, which arrive late."""


def steady(value: Any) -> Any:
    """Return a value without times and sizes, which differ between two runs."""
    match value:
        case float():
            return "<number>"
        case str():
            return TIME.sub("<time>", value)
        case dict():
            return {key: steady(each) for key, each in value.items() if key not in OF_THE_SERVER}
        case list() | tuple():
            return [steady(each) for each in value]
    return value


def plain(value: Any) -> Any:
    return steady(msgspec.to_builtins(value, enc_hook=repr, str_keys=True))


# -- the rule ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def gw(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., CliResult]:
    (tmp_path / "crontab").write_text("0 4 * * * mail ?id=nightly\n")

    def run(site: Site, line: str) -> CliResult:
        shell = InProcessShell(tmp_path, database=site.url, capsys=capsys, monkeypatch=monkeypatch)
        return shell.gw(*line.split(), "--json")

    return run


LINES: Final = [line for lines in (*READING.values(), *CHANGING.values()) for line in lines]


def test_every_command_says_that_rows_are_hidden(gw: Callable[..., CliResult], site: Site) -> None:
    site.hide(*HIDEABLE)

    for line in LINES:
        ended = gw(site, line)

        assert (ended.code, ended.out) == (4, ""), (line, ended)
        assert re.search(f"row security hides rows of .* gw grant (viewer|operator) {site.role}", ended.err), (
            line,
            ended,
        )


@pytest.mark.slow
def test_a_command_says_that_a_table_is_hidden_or_prints_what_it_always_prints(
    gw: Callable[..., CliResult], site: Site
) -> None:
    usual = {line: gw(site, line) for line in LINES}
    for table in HIDEABLE:
        with site.hidden(table):
            for line in LINES:
                ended = gw(site, line)
                if ended.code == 4:
                    assert is_named(table, ended.err), (line, ended)
                    assert ("gw grant" in ended.err, ended.out) == (True, ""), (line, ended)
                else:
                    assert (ended.code, printed(ended)) == (usual[line].code, printed(usual[line])), (table, line)


def is_named(table: str, message: str) -> bool:
    """Whether a message is gw's about hidden rows, or PostgreSQL's about a row that it rejects."""
    return any(
        text in message
        for text in (f"row security hides rows of {table} ", f'row-level security policy for table "{table}"')
    )


def printed(ended: CliResult) -> Any:
    return steady(json.loads(ended.out)) if ended.out else steady(ended.err)


def test_every_method_says_that_rows_are_hidden(site: Site) -> None:
    site.hide(*HIDEABLE)

    for name, answer in answers(site, {**METHODS, **DELETING}).items():
        denied = answer.get("denied") if isinstance(answer, dict) else answer

        assert re.search(r"row security hides rows of|violates row-level security policy", str(denied)), (name, answer)


@pytest.mark.slow
def test_a_method_says_that_a_table_is_hidden_or_returns_what_it_always_returns(site: Site) -> None:
    usual = answers(site)
    assert [name for name, each in usual.items() if isinstance(each, PermissionDeniedError)] == []
    raising: set[str] = set()
    for table in HIDEABLE:
        with site.hidden(table):
            for name, answer in answers(site).items():
                denied = answer.get("denied") if isinstance(answer, dict) else None
                if isinstance(answer, PermissionDeniedError) or denied:
                    assert is_named(table, denied or str(answer)), (name, answer)
                    raising.add(name)
                else:
                    assert answer == usual[name], (table, name)
    assert raising == set(usual), "some methods read nothing"


def answers(site: Site, methods: Mapping[str, Callable[[Client], Any]] = METHODS) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with Client(site.url) as client:
        for name, ask in methods.items():
            try:
                found[name] = plain(ask(client))
            except PermissionDeniedError as error:
                found[name] = error

    async def ask_all() -> None:
        async with AsyncClient(site.url) as client:
            for name, ask in ASYNC_METHODS.items():
                try:
                    found[f"async {name}"] = plain(await ask(client))
                except PermissionDeniedError as error:
                    found[f"async {name}"] = error

    asyncio.run(ask_all())
    return found


def test_the_doctor_names_the_table_that_is_hidden(site: Site) -> None:
    for table in HIDEABLE:
        with site.hidden(table), Client(site.url) as client:
            findings = client.doctor.findings()

            [found] = [each for each in findings if each.check == "row security"]
            assert found.status == "error"
            assert f"row security hides rows of {table} " in found.message
            # The ledger's policies record what was granted.
            kinds = ("worker",) if table == RECORD else ("operator", "worker")
            assert found.fix == "as the queue's owner: " + "; ".join(f"gw grant {kind} {site.role}" for kind in kinds)
            assert not any("gw migrate" in f"{each.message} {each.fix}" for each in findings)


def test_a_worker_does_not_start_without_the_rows_it_needs(site: Site) -> None:
    registry = TaskRegistry()
    registry.register("mail", lambda payload: None)
    for table in HIDEABLE:
        with (
            site.hidden(table),
            pytest.raises(PermissionDeniedError, match=f"row security hides rows of {table} .*gw grant worker"),
        ):
            run_once(site.url, tasks=registry)


@pytest.mark.parametrize("table", ["_private_jobs", "_private_gw_limits"])
def test_an_idle_worker_reports_rows_that_are_hidden_while_it_runs(
    site: Site, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_core.maintenance.follow_up_check.INTERVAL", timedelta(milliseconds=50))
    hidden: list[MaintenanceFailed] = []
    registry = TaskRegistry()
    registry.register("idle", lambda payload: None)
    runner = Runner(site.url, tasks=registry, handle_signals=False)
    runner.events.on(MaintenanceFailed, hidden.append)
    runner.start()
    try:
        site.hide(table)
        wait_until(lambda: hidden, what="the report")
    finally:
        runner.stop()
        runner.wait()

    assert f"row security hides rows of {table} " in str(hidden[0].error)
    assert f"gw grant worker {site.role}" in str(hidden[0].error)
    assert [each.service for each in hidden].count("gw-follow-ups") == 1


def test_outcomes_wait_while_their_rows_are_hidden(site: Site) -> None:
    ran: list[int] = []
    waiting: list[PoolConnectionLost] = []
    ended: list[JobCompleted | JobLockLost] = []
    registry = TaskRegistry()

    @registry.task("pay")
    def pay(payload: int) -> None:
        if ran:
            site.hide("_private_jobs")
        ran.append(payload)

    runner = Runner(site.url, tasks=registry, settings=WorkerSettings(concurrency=1), handle_signals=False)
    runner.events.on(PoolConnectionLost, waiting.append)
    runner.events.on(JobCompleted, ended.append)
    runner.events.on(JobLockLost, ended.append)
    site.queue.client.add_many([JobSpec(task="pay", payload=each) for each in (1, 2)])
    runner.start()
    try:
        wait_until(lambda: (len(ran) == 2 and waiting) or len(ended) == 2, what="an error, or both outcomes")
        site.queue.client.grants.grant("worker", site.role)
        wait_until(lambda: len(ended) == 2, what="the outcomes")
    finally:
        runner.stop()
        runner.wait()

    assert {type(each) for each in ended} == {JobCompleted}
    assert sorted(ran) == [1, 2]
    assert site.queue.rows("select 1 from graphile_worker.jobs where task_identifier = 'pay'") == []


def test_outcomes_are_written_whose_rows_were_hidden_only_from_the_statement(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = "gw_core.postgres.road.job_store.JobStore.require_visible_rows"
    required = resolve_name(check)

    def visible_again(store: object, *uses: object) -> None:
        site.queue.client.grants.grant("worker", site.role)
        required(store, *uses)

    registry = TaskRegistry()
    registry.register("pay", lambda payload: site.hide("_private_jobs"))
    site.queue.client.add("pay")
    monkeypatch.setattr(check, visible_again)
    ended: list[object] = []
    runner = Runner(site.url, tasks=registry, handle_signals=False)
    runner.events.on(JobCompleted, ended.append)
    runner.events.on(JobLockLost, ended.append)
    runner.start()
    try:
        wait_until(lambda: ended, what="the outcome")
    finally:
        runner.stop()
        runner.wait()

    assert [type(each) for each in ended] == [JobCompleted]
    assert site.queue.rows("select 1 from graphile_worker.jobs where task_identifier = 'pay'") == []


def test_a_kept_step_is_not_run_again_while_it_is_hidden(site: Site) -> None:
    ran: list[str] = []
    registry = TaskRegistry()

    @registry.task("pay")
    def pay(payload: object, context: JobContext) -> None:
        context.step("charge", ran.append, "charge")
        if len(ran) == 1 and context.job.attempts == 1:
            site.hide("_private_gw_steps")
            raise RetryAfter(timedelta(0))

    site.queue.client.add("pay", {})
    hidden = run_once(site.url, tasks=registry)
    assert (hidden.completed, ran) == (0, ["charge"])

    site.queue.client.grants.grant("worker", site.role)
    site.queue.client.jobs.retry(Selection.of(task="pay"))
    assert run_once(site.url, tasks=registry).completed == 1
    assert ran == ["charge"]
