"""Jobs that wait for jobs: one chain, and one job that waits for all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal
from bench.measure import RATE, Bench, drain
from bench.peers import HERE, Gw, Jobs, node_install, of_tests, task_environment
from bench.processes import Command, run_briefly
from bench.server import ask
from gw_core import Client, JobSpec

PG_BOSS: Final = "12.38.0"
CHAIN, FAN_IN, PLAIN = "chain", "fan-in", "plain"
SLOW_CHAIN: Final = 10
"""The jobs of a chain of pg-boss, which goes on once a second."""


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """The same shapes beside pg-boss, and beside jobs that wait for none."""
    count = bench.scale.waiting
    many = Jobs(count=count)
    return (
        Benchmark(
            name="fan-in",
            title=f"Drain {count:,} jobs, the last of which waits for all others",
            sides={
                "gw": lambda: drain(bench, GwShape(shape=FAN_IN), many),
                "gw, none waits": lambda: drain(bench, GwShape(shape=PLAIN), many),
                "pg-boss": lambda: drain(bench, PgBoss(FAN_IN, count), many),
                "pg-boss, none waits": lambda: drain(bench, PgBoss(PLAIN, count), many),
            },
            goals=(
                Goal(figure=RATE, beside="gw, none waits", at_least=0.5),
                Goal(figure=RATE, beside="pg-boss", at_least=2),
            ),
        ),
        Benchmark(
            name="chain",
            title=f"Drain {count:,} jobs, each of which waits for the one before",
            sides={
                "gw": lambda: drain(bench, GwShape(shape=CHAIN), many),
                "pg-boss": lambda: drain(bench, PgBoss(CHAIN, SLOW_CHAIN), Jobs(count=SLOW_CHAIN)),
            },
            goals=(Goal(figure=RATE, beside="pg-boss", at_least=10),),
        ),
    )


@dataclass(frozen=True, slots=True)
class GwShape(Gw):
    """Our worker; its jobs wait for each other."""

    shape: str = PLAIN

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add the jobs in one transaction."""
        with Client(url) as client, psycopg.connect(url) as connection:
            if self.shape == CHAIN:
                before: int | None = None
                for n in range(jobs.count):
                    after = None if before is None else [before]
                    before = client.add("noop", {"n": n}, after=after, conn=connection).id
                return
            members = [JobSpec(task="noop", payload={"n": n}) for n in range(jobs.count - 1)]
            added = client.add_many(members, conn=connection)
            after = added if self.shape == FAN_IN else None
            client.add("noop", {"n": jobs.count - 1}, after=after, conn=connection)


@dataclass(frozen=True, slots=True)
class PgBoss:
    """pg-boss from npm: LISTEN, batches of 1,000 without a rest, and the shortest interval for jobs that wait."""

    shape: str
    count: int
    finishes: bool = True

    def install(self, url: str) -> None:
        """Make an empty database ready."""
        run_briefly(self._argv(url, "install"), "pg-boss install")

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add jobs of the task that does nothing."""
        run_briefly(self._argv(url, "fill", self.shape, str(jobs.count)), "pg-boss fill")

    def jobs_left(self, url: str) -> int:
        """Return how many jobs are not completed."""
        return int(ask(url, "select count(*) from pgboss.job where name = 'noop' and state < 'completed'"))

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return the program that runs what there is."""
        has_jobs = self.jobs_left(url) > 0
        argv = self._argv(url, "drain", str(self.count)) if has_jobs else self._argv(url, "install")
        return Command(argv=argv, folder=folder, environment=task_environment(folder))

    @staticmethod
    def _argv(url: str, *arguments: str) -> tuple[str, ...]:
        node = str(node_install().node)
        package: Path = of_tests("npm").npm_package("pg-boss", PG_BOSS)
        return (node, str(HERE / "programs" / "pg_boss.mjs"), str(package / "dist" / "index.js"), url, *arguments)
