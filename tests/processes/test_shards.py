"""Queues on three servers: one program runs and reads all of them, and a dead server concerns only its own jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from supervised import CHECKOUT
from support.postgres_server import Server
from support.waiting import wait_until
from support.warm_program import run_gw

from gw_core import Client, JobSpec
from gw_core.errors import DatabaseUnavailableError

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

NAMES = ("eu", "us", "asia")
TASKS = """
import os
import time
from gw_core import cron, task

@task
def note(payload):
    with open(os.environ["NOTES"], "ab", buffering=0) as file:
        file.write(b"%d\\n" % payload["n"])

@task
def nap(payload):
    time.sleep(0.02)
    note(payload)

@cron("* * * * *")
@task
def minutely():
    pass
"""


@pytest.fixture
def servers() -> Iterator[Mapping[str, Server]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Server()) for name in NAMES}


@pytest.fixture
def urls(servers: Mapping[str, Server]) -> Mapping[str, str]:
    return {name: server.url for name, server in servers.items()}


class Site:
    """A folder with tasks, and `gw` on all shards."""

    def __init__(self, folder: Path, urls: Mapping[str, str]) -> None:
        self._folder = folder
        (folder / "tasks").mkdir()
        (folder / "tasks" / "work.py").write_text(TASKS)
        (folder / "gw.toml").write_text(f"shards = {[f'{name}={url}' for name, url in urls.items()]!r}\n")
        self._notes = folder / "notes"
        self.log = folder / "log"

    def gw(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Run a command to its end; returns stdout and stderr."""
        done = run_gw(arguments, folder=self._folder, environment=self._environment())
        assert done.code == code, done.err
        return done.out, done.err

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """`gw run` until the block ends; it must exit gracefully."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(self._command("run", *arguments), **self._options(), stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            code = process.wait(60)
        assert code == -signal.SIGTERM, self.log.read_text()

    def notes(self) -> Counter[int]:
        return Counter(map(int, self._notes.read_text().split())) if self._notes.exists() else Counter()

    def _command(self, *arguments: str) -> Sequence[str]:
        return [sys.executable, "-m", "gw_cli", *arguments]

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        return {**inherited, "PYTHONPATH": str(CHECKOUT), "NOTES": str(self._notes)}

    def _options(self) -> dict[str, object]:
        return {"cwd": self._folder, "env": self._environment(), "stdin": subprocess.DEVNULL}


@pytest.fixture
def site(tmp_path: Path, urls: Mapping[str, str]) -> Site:
    return Site(tmp_path, urls)


def specs(numbers: range, task: str = "note") -> list[JobSpec]:
    return [JobSpec(task=task, payload={"n": n}) for n in numbers]


def test_a_killed_server_concerns_only_its_own_jobs(
    site: Site, servers: Mapping[str, Server], urls: Mapping[str, str]
) -> None:
    with site.running("--processes", "2", "--poll-interval", "200ms"), Client.sharded(urls, by=number_of) as queue:
        wait_until(lambda: site.log.read_text().count("is ready (pid") == 6, what="six processes")
        first, second = specs(range(600)), specs(range(600, 1200))
        queue.add_many(first)
        wait_until(lambda: site.notes() == Counter(range(600)), what="the first jobs to run")

        servers["us"].stop(signal.SIGKILL)
        theirs = [spec for spec in second if queue.shard_for(number_of(spec)) == "us"]
        others = [spec for spec in second if spec not in theirs]
        queue.add_many(others)
        # In a client of its own: the pool of the other one would take its time to connect again.
        with Client.sharded(urls, by=number_of) as asking, pytest.raises(DatabaseUnavailableError):
            asking.add(theirs[0])
        expected = {*range(600), *map(number_of, others)}
        wait_until(lambda: set(site.notes()) == expected, what="the jobs of the other servers to run")

        servers["us"].start()
        queue.add_many(theirs)
        wait_until(lambda: set(site.notes()) == set(range(1200)), what="the jobs of the third server to run")

    assert "Shard us: process 2, process 5" in site.log.read_text()
    assert theirs
    # Only the server that was killed may have lost results, and let their jobs run again.
    again = [n for n, times in site.notes().items() if times > 1]
    assert {queue.shard_for(n) for n in again} <= {"us"}


@pytest.mark.slow
def test_the_other_servers_lose_nothing_and_keep_their_speed(
    site: Site, servers: Mapping[str, Server], urls: Mapping[str, str]
) -> None:
    with Client.sharded(urls, by=number_of) as queue:
        for each in queue.shards.values():
            each.migrate()
        queue.add_many(specs(range(60_000), "nap"))
        survivors = {name: queue.shards[name] for name in NAMES if name != "us"}

        with site.running():
            wait_until(lambda: len(site.notes()) > 3_000, what="all processes to run jobs")
            before = jobs_per_second(survivors)
            servers["us"].stop(signal.SIGKILL)
            after = jobs_per_second(survivors)
            servers["us"].start()

        slower = {name: 1 - after[name] / before[name] for name in survivors}
        print(f"jobs a second before the kill: {before}, after it: {after}, slower by: {slower}")
        left = [n for name in survivors for n in numbers_left(urls[name])]
        ran = [n for n in site.notes().elements() if queue.shard_for(n) != "us"]
        assert Counter(ran + left) == Counter(n for n in range(60_000) if queue.shard_for(n) != "us")
        assert max(slower.values()) < 0.05, slower


def numbers_left(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select (payload->>'n')::int from graphile_worker._private_jobs where task_id in"
            " (select id from graphile_worker._private_tasks where identifier = 'nap')"
        )
        return [n for (n,) in rows]


def jobs_per_second(clients: Mapping[str, Client]) -> dict[str, float]:
    """Count for ten seconds what each of the servers completes."""

    def waiting() -> dict[str, tuple[int, float]]:
        return {name: (each.jobs.count().jobs, time.monotonic()) for name, each in clients.items()}

    first = waiting()
    time.sleep(10)
    last = waiting()
    return {name: (first[name][0] - last[name][0]) / (last[name][1] - first[name][1]) for name in clients}


def test_a_server_that_is_down_at_the_start_is_waited_for(
    site: Site, servers: Mapping[str, Server], urls: Mapping[str, str]
) -> None:
    with Client.sharded(urls, by=number_of) as queue:
        for each in queue.shards.values():
            each.migrate()
        queue.add_many(specs(range(90)))
        down = Counter(n for n in range(90) if queue.shard_for(n) == "eu")
    servers["eu"].stop()

    with site.running():
        wait_until(lambda: site.notes() == Counter(range(90)) - down, what="the jobs of the others to run")
        servers["eu"].start()
        wait_until(lambda: site.notes() == Counter(range(90)), what="all jobs to run")


def test_one_shard_schedules_the_recurring_tasks(site: Site, urls: Mapping[str, str]) -> None:
    with site.running():
        wait_until(lambda: site.log.read_text().count("is ready (pid") == 3, what="three processes")
        with Client(urls["eu"]) as client:
            wait_until(lambda: [each.identifier for each in client.cron.list()] == ["minutely"], what="the cron item")
        for name in ("us", "asia"):
            with Client(urls[name]) as client:
                assert client.cron.list() == []


def test_the_reading_commands_show_all_shards_and_say_which_is_which(
    site: Site, servers: Mapping[str, Server], urls: Mapping[str, str]
) -> None:
    for number, url in enumerate(urls.values()):
        with Client(url) as client:
            client.migrate()
            client.add_many(specs(range(number + 1)))

    header, *rows = site.gw("list", "--columns", "task,state")[0].splitlines()
    assert header.split("\t") == ["shard", "task", "state"]
    assert Counter(row.split("\t")[0] for row in rows) == {"eu": 1, "us": 2, "asia": 3}
    counts = json.loads(site.gw("stats", "--json")[0])
    assert [(each["shard"], each["total"]["count"]) for each in counts] == [("eu", 1), ("us", 2), ("asia", 3)]
    findings = json.loads(site.gw("doctor", "--json")[0])
    assert {each["shard"] for each in findings} == set(NAMES)

    servers["us"].stop()
    output, errors = site.gw("stats", "--json", code=3)
    assert [each["shard"] for each in json.loads(output)] == ["eu", "asia"]
    assert "shard us:" in errors


def number_of(spec: JobSpec) -> int:
    return int(spec.payload["n"])
