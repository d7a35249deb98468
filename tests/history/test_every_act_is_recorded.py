"""Every call that acts for an operator leaves a record, in its transaction; the test finds these calls."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.project_files import ROOT, project_files
from support.queue_fixture import QueueFixture

from gw_core import Client, JobSpec, RecoverySettings, Selection
from gw_core.errors import GraphileWorkerError, JobFailedError, ResultUnavailableError
from gw_core.front_ends import BackendSession, FrontEnd, NameKind

NOT_BY_OPERATORS = {
    "add": "programs add jobs",
    "add_batch": "programs add jobs",
    "add_many": "programs add jobs",
    "try_add": "programs add jobs",
    "groups.add": "programs add jobs",
    "close": "changes nothing in the database",
    "migrate": "only the owner of the schema can; the ledger of migrations has it",
    "grants.grant": "only the owner of the schema can; gw grants lists it",
    "grants.revoke": "only the owner of the schema can",
    "history.record_others": "only the owner of the schema can",
    "history.expire": "deletes what nobody can read any more, as each worker does",
    "doctor.health_check": "changes nothing, and reports a server that is read-only",
    "front end.add_json": "programs add jobs",
    "front end.listen": "changes nothing in the database",
    "front end.cancel_statements": "ends statements of the program itself",
}
"""The calls that change something and record nothing, with the reason."""

EXAMPLES: dict[str, Callable[[Client, int, Any], object]] = {
    "remove": lambda client, job, by: client.remove("key", by=by),
    "jobs.cancel": lambda client, job, by: client.jobs.cancel([waiting(client)], by=by),
    "jobs.complete": lambda client, job, by: client.jobs.complete([job], by=by),
    "jobs.fail": lambda client, job, by: client.jobs.fail([job], by=by),
    "jobs.reschedule": lambda client, job, by: client.jobs.reschedule([job], priority=3, by=by),
    "jobs.retry": lambda client, job, by: client.jobs.retry([job], by=by),
    "jobs.restore": lambda client, job, by: client.jobs.restore(deleted(client, job), by=by),
    "jobs.in_batches().complete": lambda client, job, by: list(client.jobs.in_batches().complete([job], by=by)),
    "jobs.in_batches().fail": lambda client, job, by: list(client.jobs.in_batches().fail([job], by=by)),
    "jobs.in_batches().reschedule": lambda client, job, by: list(
        client.jobs.in_batches().reschedule([job], priority=3, by=by)
    ),
    "jobs.in_batches().retry": lambda client, job, by: list(client.jobs.in_batches().retry([job], by=by)),
    "cleanup.delete": lambda client, job, by: client.cleanup.delete("failed-jobs", by=by),
    "cleanup.delete_in_batches": lambda client, job, by: list(client.cleanup.delete_in_batches("unused-tasks", by=by)),
    "cron.forget": lambda client, job, by: client.cron.forget("nightly", by=by),
    "groups.cancel": lambda client, job, by: client.groups.cancel(waiting(client), by=by),
    "limits.set": lambda client, job, by: client.limits.set("work", running=3, by=by, timeout=0),
    "limits.remove": lambda client, job, by: client.limits.remove("limited", by=by, timeout=0),
    "pauses.pause": lambda client, job, by: client.pauses.pause("task:work", by=by, timeout=0),
    "pauses.resume": lambda client, job, by: client.pauses.resume("task:paused", by=by, timeout=0),
    "workers.sweep": lambda client, job, by: client.workers.sweep(RecoverySettings(orphans_after=timedelta()), by=by),
    "workers.unlock": lambda client, job, by: client.workers.unlock(["dead"], by=by),
    "front end.end_session": lambda client, job, by: FrontEnd(client).end_session(other_session(client), by=by),
    "front end.remove_expected": lambda client, job, by: FrontEnd(client).remove_expected(
        "key", client.jobs.get(job), by
    ),
}
"""How each call that takes `by` changes something; `job` failed and has the key `key`."""

RECORDED_AS = {
    "jobs.in_batches().": "",
    "cleanup.": "cleanup",
    "limits.": "limit",
    "front end.remove_expected": "remove",
}

SIGNALS = {
    "end_session.sql": "a worker's own, before it claims again",
    "terminate_session.sql": "front end.end_session",
}
"""The statements that end a session, and who runs them: a transaction that may not write can run them."""

WITHOUT_OPERATOR = {
    "gw_core/contrib/django/upgrade.py client.jobs.complete": "flush deletes all data, for example after each test"
}
"""The calls of front ends that name no operator, with the reason."""

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "jobs.get": (1,),
    "jobs.show": (1,),
    "jobs.steps": (1,),
    "history.attempts": (1,),
    "result": (1,),
    "workers.locks": (["dead"],),
    "cleanup.count": ("failed-jobs",),
    "front end.at_server_time": ("task:work",),
    "front end.cancellable": (Selection.of(task="work"),),
    "front end.count_queue": ("q",),
    "front end.names": (NameKind.TASKS,),
    "front end.ranked_queues": ([],),
    "front end.tasks_of": ("task:work",),
    "grants.statements": ("viewer", "pg_monitor"),
    "grants.revoke_statements": ("pg_monitor",),
    "tasks.statistics": (timedelta(hours=1),),
    "tasks.statistics_over_time": (timedelta(hours=1),),
}
KEYWORDS: dict[str, dict[str, Any]] = {"result": {"timeout": 0.1}, "front end.tasks_of": {"most": 3}}
"""What the calls that read need."""


def waiting(client: Client) -> int:
    """Add a job that waits for another."""
    return client.add("work", after=[client.add("work")]).id


def other_session(client: Client) -> BackendSession:
    """Return the session of another program."""
    found = client.doctor.lock_waits().oldest_transactions
    return next(each for each in found if each.application == "nightly")


def deleted(client: Client, job: int) -> Any:
    """Return a job as it was before it was completed."""
    report = client.jobs.show(job)
    assert report is not None
    client.jobs.complete([job])
    return report.job


def calls(cls: type[Any], prefix: str = "") -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the methods of a client and of its parts, as a program writes them."""
    for name in dir(cls):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(cls, name)
        method = getattr(member, "function", None) or (member if inspect.isfunction(member) else None)
        if method is not None:
            yield f"{prefix}{name}", inspect.signature(method)
        if part := part_of(member):
            yield from calls(part, f"{prefix}{name}{'.' if method is None else '().'}")


def part_of(member: Any) -> type[Any] | None:
    """Return the class of a part that a property or a method returns."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    returned = str(getattr(function, "__annotations__", {}).get("return", ""))
    return PARTS.get(returned.partition("[")[0])


def part_classes() -> dict[str, type[Any]]:
    """Return the classes of the parts of a client, and of what these return, by name."""
    with Client("postgres://localhost:1/nowhere") as client:
        names = [name for name in dir(Client) if not callable(getattr(Client, name)) and name[0] != "_"]
        modules = {sys.modules[type(getattr(client, name)).__module__] for name in names}
    return {
        name: kind
        for module in modules
        if module.__name__.startswith("gw_core.clients.")
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
    }


PARTS = part_classes()
CALLS = {**dict(calls(Client)), **dict(calls(FrontEnd, "front end."))}
ACTS = {name for name, signature in CALLS.items() if "by" in signature.parameters}


@pytest.fixture
def nightly(site: QueueFixture) -> Iterator[psycopg.Connection[Any]]:
    """A session of another program."""
    with psycopg.connect(site.url, application_name="nightly") as connection:
        connection.execute("select pg_current_xact_id(), 'token=1234' as nightly")
        yield connection
        connection.close()


@pytest.fixture
def job(site: QueueFixture, nightly: psycopg.Connection[Any]) -> int:
    """A queue in which each example changes something, and a job that failed there."""
    failed = site.add("work", job_key="key")
    site.client.jobs.fail([failed], "no account")
    site.client.pauses.pause("task:paused", timeout=0)
    site.client.limits.set("limited", running=1, timeout=0)
    site.run("insert into _private_known_crontabs values ('nightly', now(), now())")
    held = site.add("work", queue_name="q")
    site.run("update _private_jobs set locked_at = now() - interval '1 hour', locked_by = 'dead' where id = %s", held)
    site.run("update _private_job_queues set locked_at = now() - interval '1 hour', locked_by = 'dead'")
    return failed


def everything(site: QueueFixture) -> dict[str, Any]:
    """Every row, apart from the numbers of revisions."""
    tables = site.run(
        "select oid::regclass::text as name from pg_class where relkind in ('r', 'p') and not relispartition"
        " and relnamespace = 'graphile_worker'::regnamespace"
    )
    return {each["name"]: site.run(f"select to_jsonb(found) from {each['name']} as found") for each in tables}


def test_every_call_that_takes_an_operator_is_tried_here() -> None:
    assert EXAMPLES.keys() == ACTS
    assert NOT_BY_OPERATORS.keys() <= CALLS.keys() - ACTS


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_call_that_names_an_operator_is_recorded(site: QueueFixture, job: int, name: str) -> None:
    EXAMPLES[name](site.client, job, "anna")

    [found] = site.client.history.actions()
    action = next((word for start, word in RECORDED_AS.items() if word and name.startswith(start)), name.split(".")[-1])
    assert (found.action, found.by) == (action, "anna")
    assert found.job_ids or found.targets
    assert found.role == site.run("select session_user::text as role")[0]["role"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_its_record_nothing_is_done(site: QueueFixture, job: int, name: str, intruder: str) -> None:
    before = everything(site)
    with pytest.raises(Exception, match="intruder"):
        EXAMPLES[name](site.client, job, intruder)
    if name not in ("jobs.cancel", "groups.cancel", "jobs.restore"):  # those prepare a job first
        assert everything(site) == before
    assert site.client.history.actions() == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_name_that_cannot_be_recorded_is_rejected_first(site: QueueFixture, job: int, name: str) -> None:
    with pytest.raises(GraphileWorkerError, match="by has more than"):
        EXAMPLES[name](site.client, job, "x" * 2_000)
    assert site.client.history.actions() == []


def test_a_call_that_takes_no_operator_changes_nothing(site: QueueFixture, job: int) -> None:
    """It runs where PostgreSQL lets no transaction write."""
    failed: dict[str, str] = {}
    with Client(make_conninfo(site.url, options="-c default_transaction_read_only=on")) as client:
        for name in sorted(CALLS.keys() - ACTS - NOT_BY_OPERATORS.keys()):
            target: Any = client
            for part in name.split("."):
                if part == "front end":
                    target = FrontEnd(client)
                    continue
                target = target.in_batches() if part == "in_batches()" else getattr(target, part)
            try:
                target(*ARGUMENTS.get(name, ()), **KEYWORDS.get(name, {}))
            except (JobFailedError, ResultUnavailableError):  # depending on whether there is a job 1
                pass
            except GraphileWorkerError as error:
                failed[name] = str(error)
    assert failed == {}


def test_the_front_ends_name_their_operator_in_every_call() -> None:
    """A call is recognized by its last two names, such as `limits.set` or `in_batches(…).retry`."""
    receivers = {*(each.rpartition(".")[0].rpartition(".")[2].removesuffix("()") for each in ACTS), "client", "batches"}
    verbs = {each.rpartition(".")[2] for each in ACTS}
    missing, found = [], 0
    for path in [
        path
        for folder in ("gw_cli", "gw_tui", "gw_core/contrib", "gw_core/testing")
        for path in project_files(ROOT / folder, "*.py")
    ]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in verbs):
                continue
            receiver = re.sub(r"\(.*", "", ast.unparse(node.func.value), flags=re.DOTALL).rpartition(".")[2]
            if receiver in receivers - {""}:
                found += 1
                if "by" not in {keyword.arg for keyword in node.keywords}:
                    missing.append(f"{path.relative_to(ROOT)} {ast.unparse(node.func)}")

    assert found > 20
    assert sorted(missing) == sorted(WITHOUT_OPERATOR)


def test_only_known_statements_end_sessions() -> None:
    files = project_files(ROOT / "sql", "*.sql")
    found = {each.name for each in files if re.search(r"pg_(terminate|cancel)_backend\(", each.read_text("utf-8"))}
    assert found == SIGNALS.keys()


# -- what the records have ---------------------------------------------------------------------------------------------


def test_a_restored_job_names_the_one_that_it_was(site: QueueFixture, job: int) -> None:
    new = site.client.jobs.restore(deleted(site.client, job), by="anna")

    [found] = site.client.history.actions(new)
    assert (found.job_ids, found.targets, found.details) == ((new,), ("task:work",), {"former_id": job})


def test_a_limit_has_its_numbers(site: QueueFixture) -> None:
    site.client.limits.set("mail", per_period=10, period=60, by="anna", timeout=0)
    site.client.limits.remove("mail", by="ben", timeout=0)
    site.client.limits.remove("mail", by="ben", timeout=0)

    removed, made = site.client.history.actions()
    assert (made.targets, made.details["per_period"], made.details["period_seconds"]) == (("task:mail",), 10, 60)
    assert (removed.by, removed.targets, removed.details) == ("ben", ("task:mail",), {"off": True})


def test_each_batch_of_a_cleanup_has_its_count(site: QueueFixture) -> None:
    site.client.add_many([JobSpec(task="work")] * 5)
    site.client.jobs.fail(Selection.of(task="work"))

    assert list(site.client.cleanup.delete_in_batches("failed-jobs", size=3, by="anna")) == [3, 2]
    assert list(site.client.cleanup.delete_in_batches("failed-jobs", size=3, by="anna")) == []
    assert [(each.targets, each.details) for each in site.client.history.actions()] == [
        (("failed-jobs",), {"count": 2}),
        (("failed-jobs",), {"count": 3}),
    ]


def test_a_sweep_has_its_workers_jobs_and_queues(site: QueueFixture, job: int) -> None:
    settings = RecoverySettings(orphans_after=timedelta())
    site.client.workers.sweep(settings, dry_run=True, by="anna")
    assert site.client.history.actions() == []

    report = site.client.workers.sweep(settings, by="anna")
    site.client.workers.sweep(settings, by="anna")

    [found] = site.client.history.actions()
    assert (report.jobs, found.job_ids, found.targets) == (1, (job + 1,), ("dead",))


def test_queues_that_a_sweep_releases_are_named(site: QueueFixture) -> None:
    site.add("work", queue_name="q")
    site.run("update _private_job_queues set locked_at = now() - interval '10 minutes', locked_by = 'dead'")

    assert site.client.workers.sweep(by="anna").queues == 1
    [found] = site.client.history.actions()
    assert (found.action, found.targets, found.details) == ("sweep", ("queue:q",), {"queues": 1})


def test_an_ended_session_has_its_role_its_program_and_what_it_ran(
    site: QueueFixture, nightly: psycopg.Connection[Any]
) -> None:
    session = other_session(site.client)

    assert FrontEnd(site.client).end_session(session, by="anna")
    with pytest.raises(psycopg.OperationalError):
        nightly.execute("select 1")
    assert not FrontEnd(site.client).end_session(session, by="anna")

    [found] = site.client.history.actions()
    assert (found.action, found.by, found.targets) == ("end_session", "anna", (f"session:{session.pid}",))
    assert found.details == {"role": session.user, "application": "nightly", "statement": session.statement}
    assert "select pg_current_xact_id()" in found.details["statement"]


def test_a_session_whose_end_cannot_be_recorded_goes_on(
    site: QueueFixture, nightly: psycopg.Connection[Any], intruder: str
) -> None:
    with pytest.raises(GraphileWorkerError, match="intruder"):
        FrontEnd(site.client).end_session(other_session(site.client), by=intruder)

    assert nightly.execute("select 1").fetchone() == (1,)


def test_what_workers_do_is_not_recorded(site: QueueFixture, job: int) -> None:
    site.client.cleanup.delete("failed-jobs")
    site.client.workers.sweep(RecoverySettings(orphans_after=timedelta()))
    site.client.cron.forget("nightly")
    site.client.limits.remove("limited", timeout=0)

    assert site.client.history.actions() == []
