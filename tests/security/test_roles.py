"""The roles of docs/guide/security.md can do their part and no more, by the SQL that stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import attacks
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.databases import install_schema
from support.shell import CliResult, InProcessShell, Shell

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "security.md").read_text("utf-8")
BLOCKS = re.findall(r"```sql\n-- as (a superuser|queue_owner)(?:, variant (\w+))?\n(.*?)```", PAGE, re.DOTALL)
ROLES = ("queue_owner", "queue_worker", "queue_viewer", "queue_reader", "queue_adder")

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
    "cleanup unused-tasks --yes",
    "run --once",
    "doctor",
)
VIEWER = ("list", "show 1", "stats", "queues", "tasks", "workers", "cron list --crontab crontab", "tui --once")


class Site:
    """A database with the roles of the page, under names of this test's own."""

    def __init__(self, url: str, mark: str) -> None:
        self.url, self._mark = url, mark

    def named(self, text: str) -> str:
        return re.sub(r"\bqueue_(?=owner|worker|viewer|reader|adder)", f"schema_{self._mark}_", text)

    def run(self, statement: str, role: str | None = None) -> list[tuple[object, ...]]:
        with psycopg.connect(self.as_role(role) if role else self.url, autocommit=True) as connection:
            cursor = connection.execute(self.named(statement).encode())
            return cursor.fetchall() if cursor.description else []

    def as_role(self, role: str) -> str:
        return make_conninfo(self.url, options=f"-c role={self.named(role)}")


@pytest.fixture
def mark(server_url: str) -> Iterator[str]:
    mark = uuid4().hex[:10]
    names = [f"schema_{mark}_{role.partition('_')[2]}" for role in ROLES]
    yield mark
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name in names:
            connection.execute(f"drop role if exists {name}")


@pytest.fixture(params=["bypassrls", "policies"])
def site(request: pytest.FixtureRequest, mark: str, fresh_url: str) -> Site:
    """The page's statements, one after the other; `gw migrate` runs as soon as there is an owner."""
    site = Site(fresh_url, mark)
    for role in ROLES[1:]:
        site.run(f"create role {role} login")
    assert {variant for _, variant, _ in BLOCKS} == {"", "bypassrls", "policies"}
    for number, (author, variant, text) in enumerate(BLOCKS):
        if variant in ("", request.param):
            site.run(text, None if author == "a superuser" else author)
        if number == 0:
            install_schema(site.as_role("queue_owner"))
    return site


class Program:
    """`gw` as one of the roles; in the process of the test but for what runs tasks."""

    def __init__(
        self, site: Site, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._site, self._folder, self._capsys, self._monkeypatch = site, folder, capsys, monkeypatch

    def __call__(self, line: str, role: str) -> CliResult:
        url = self._site.as_role(role)
        if line.startswith("run"):
            return Shell(self._folder, database=url).gw(*line.split())
        within = InProcessShell(self._folder, database=url, capsys=self._capsys, monkeypatch=self._monkeypatch)
        return within.gw(*line.split())


@pytest.fixture
def gw(site: Site, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(site, folder, capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload):\n    pass\n")
    (tmp_path / "crontab").write_text("0 4 * * * nightly\n")
    return tmp_path


def test_the_worker_does_everything_but_migrate(site: Site, gw: Program) -> None:
    ended = {line: gw(line, "queue_worker") for line in WORKER}

    assert {line: each.err for line, each in ended.items() if each.code != 0} == {}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        site.run("alter table graphile_worker._private_jobs add mine int", "queue_worker")


def test_the_viewer_reads_and_changes_nothing(site: Site, gw: Program) -> None:
    site.run("select graphile_worker.add_job('mail')")

    ended = {line: gw(line, "queue_viewer") for line in VIEWER}

    assert {line: each.err for line, each in ended.items() if each.code != 0} == {}
    assert "mail" in ended["list"].out
    assert gw("fail 1", "queue_viewer").code == 4
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        site.run("select graphile_worker.add_job('mail')", "queue_viewer")


def test_the_adder_adds_what_the_function_allows_and_a_reader_sees_it_without_its_payload(site: Site) -> None:
    assert site.run("select app.send_receipt(7)", "queue_adder") == [(1,)]

    assert site.run("select payload::text from graphile_worker._private_jobs") == [('{"order" : 7}',)]
    assert site.run("select id from graphile_worker.jobs", "queue_reader") == [(1,)]
    for role, statement in (
        ("queue_reader", "select payload from graphile_worker._private_jobs"),
        ("queue_adder", "select graphile_worker.add_job('mail')"),
        ("queue_adder", "select * from graphile_worker.jobs"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            site.run(statement, role)

    assert_the_adder_runs_no_code_of_its_own_as_the_owner(site)


@pytest.mark.parametrize("role", ROLES[1:])
def test_no_role_but_the_owner_gains_the_owner_s_rights(site: Site, role: str) -> None:
    site.run("grant usage on schema graphile_worker to queue_adder", "queue_owner")

    for attack in (attacks.run_code_as_the_owner, lambda session: attacks.forge_history(session, 1, 1)):
        denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function")
        with psycopg.connect(site.as_role(role)) as session, denied:
            attack(session)


def assert_the_adder_runs_no_code_of_its_own_as_the_owner(site: Site) -> None:
    site.run("create schema evil authorization queue_adder; grant usage on schema evil to public")
    trap = (
        "create function evil.json_build_object(text, bigint) returns json language plpgsql as "
        "$$ begin raise exception 'as %', current_user; end $$; set search_path = evil, pg_catalog; "
    )
    site.run(trap + "select app.send_receipt(7)", "queue_adder")

    site.run("alter function app.send_receipt(bigint) reset all")
    with pytest.raises(psycopg.errors.RaiseException, match="_owner"):
        site.run("set search_path = evil, pg_catalog; select app.send_receipt(7)", "queue_adder")
