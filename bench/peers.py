"""What the benchmark needs of each side, and the two sides that share the queue's schema."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

from bench import checkout
from bench.harness import NotMeasuredError
from bench.processes import Command, run_briefly, run_together
from bench.server import ask
from gw_core import Client

HERE: Final = Path(__file__).parent
PYTHON_TASKS: Final = HERE / "tasks" / "python"
NODE_TASKS: Final = HERE / "tasks" / "node"
CHUNK: Final = 10_000

FILL: Final = """
select count(*)
  from graphile_worker.add_jobs(array(
         select row(
                  %s::text,
                  json_build_object('n', n),
                  case when %s::int > 0 then %s::text || n %% %s::int end,
                  null, null, null, null, null
                )::graphile_worker.job_spec
           from generate_series(%s::int, %s::int) as n
       ))
"""

ENLARGE: Final = """
update graphile_worker._private_jobs set payload = json_build_object('n', payload->'n', 'text', %s::text)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Jobs to be run: numbered from 0, spread over some named queues or in none."""

    count: int
    task: str = "noop"
    payload_bytes: int = 0
    """The size of a text in the payload, beside the number."""
    queues: int = 0
    queue_prefix: str = "queue-"


class Peer(Protocol):
    """A program that runs jobs."""

    @property
    def finishes(self) -> bool:
        """Whether it guarantees to run everything it can, so that a job left over is an error."""

    def install(self, url: str) -> None:
        """Make an empty database ready."""

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add jobs of the task that does nothing."""

    def jobs_left(self, url: str) -> int:
        """Return how many jobs there still are."""

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return the program that empties the queue, or runs until it is stopped."""


def task_environment(folder: Path) -> dict[str, str]:
    """Return the variables that name the files to which tasks report."""
    started = folder / "started"
    return {"BENCH_RAN": str(folder)} | ({"BENCH_STARTED": str(started)} if started.exists() else {})


class OnTheSharedSchema:
    """All of them know the schema's own functions, and each is measured on the schema that it installed itself."""

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add jobs, of the task that does nothing unless they name another."""
        queues, prefix = jobs.queues, jobs.queue_prefix
        for first in range(0, jobs.count, CHUNK):
            last = min(first + CHUNK, jobs.count) - 1
            ask(url, FILL, jobs.task, queues, prefix, max(queues, 1), first, last)
        if jobs.payload_bytes:
            # A text that PostgreSQL cannot compress, or hardly anything of it would be stored.
            ask(url, ENLARGE, os.urandom(jobs.payload_bytes // 2).hex())

    def jobs_left(self, url: str) -> int:
        """Return how many jobs there still are."""
        return int(ask(url, "select count(*) from graphile_worker._private_jobs"))


# -- ours ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gw(OnTheSharedSchema):
    """Our worker as it comes, plus the given arguments of `gw run`."""

    arguments: Sequence[str] = ()
    job_option: str | None = None
    """The option of `JobSpec` with which jobs are added in bulk."""
    finishes: bool = True

    def install(self, url: str) -> None:
        """Make an empty database ready."""
        if checkout.is_this():
            with Client(url) as client:
                client.migrate()
        else:
            argv = (checkout.python(), "-m", "gw_cli", "migrate", "--connection", url)
            with TemporaryDirectory() as folder:
                run_together([Command(argv=argv, folder=Path(folder), environment=checkout.environment())])

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return `gw run`, or `gw run --once`."""
        arguments = ("--connection", url, "--tasks", str(PYTHON_TASKS), *(("--once",) if once else ()))
        return Command(
            argv=(checkout.python(), "-m", "gw_cli", "run", *arguments, *self.arguments),
            folder=folder,
            environment={**task_environment(folder), **checkout.environment()},
        )

    def bulk_add(self, url: str, folder: Path, count: int, queues: int) -> Command:
        """Return a program that adds jobs through `Client.add_many` and prints how many seconds that took."""
        option = () if self.job_option is None else (self.job_option,)
        return Command(
            argv=(checkout.python(), str(HERE / "programs" / "bulk_add.py"), url, str(count), str(queues), *option),
            folder=folder,
            environment=checkout.environment(),
        )


# -- Graphile Worker (Node.js) ----------------------------------------------------------------------------------------

TUNED: Final[Mapping[str, Any]] = {
    "concurrentJobs": 24,
    "maxPoolSize": 25,
    "localQueue": {"size": 500},
    "completeJobBatchDelay": 0,
    "failJobBatchDelay": 0,
}
"""What Graphile Worker's manual calls its fastest configuration."""


@dataclass(frozen=True, slots=True)
class Node(OnTheSharedSchema):
    """The Node.js worker from npm with a configuration of its own; none is its defaults."""

    configuration: Mapping[str, Any] = field(default_factory=dict)
    log_success: bool = True
    arguments: Sequence[str] = ()
    # With named queues it may query for more while it still settles the last job, find none and end.
    finishes: bool = False

    def install(self, url: str) -> None:
        """Make an empty database ready."""
        argv = self._argv("--connection", url, "--schema-only")
        run_briefly(argv, "installing the schema with the Node.js worker", folder=NODE_TASKS)

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return `graphile-worker`, or `graphile-worker --once`."""
        preset = {"worker": {"taskDirectory": str(NODE_TASKS), **self.configuration}}
        config = folder / "graphile.config.cjs"
        config.write_text(f"module.exports = {json.dumps(preset)};\n")
        arguments = ("--connection", url, "--config", str(config), *(("--once",) if once else ()), *self.arguments)
        quiet = {} if self.log_success else {"NO_LOG_SUCCESS": "1"}
        return Command(argv=self._argv(*arguments), folder=folder, environment={**task_environment(folder), **quiet})

    def bulk_add(self, url: str, folder: Path, count: int, queues: int) -> Command:
        """Return a program that adds jobs through `addJobs` and prints how many seconds that took."""
        node = node_install()
        entry = str(node.package / "dist" / "index.js")
        return Command(
            argv=(
                str(node.node),
                "--no-warnings",
                str(HERE / "programs" / "bulk_add.mjs"),
                *(entry, url, str(count), str(queues)),
            ),
            folder=folder,
        )

    @staticmethod
    def _argv(*arguments: str) -> tuple[str, ...]:
        node = node_install()
        return (str(node.node), "--no-warnings", str(node.package / "dist" / "cli.js"), *arguments)


def node_tuned() -> Node:
    """Return the Node.js worker in its fastest configuration, without log lines."""
    return Node(TUNED, log_success=False)


class NodeInstall(Protocol):
    """Where npm put the worker and its Node.js."""

    version: str
    node: Path
    package: Path


@cache
def node_install() -> NodeInstall:
    """Return the newest Node.js worker, installed from npm on first use; raises `NotMeasuredError` without npm."""
    if shutil.which("npm") is None:
        raise NotMeasuredError("npm is not installed")
    try:
        install: NodeInstall = of_tests("node_worker").node_worker()
    except (ImportError, AssertionError, OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasuredError(f"the Node.js worker cannot be installed: {' '.join(str(error).split())}") from error
    return install


def of_tests(module: str) -> Any:
    """Return a module of the tests' support, which knows how to get peers, and keeps them in a cache that we share."""
    folder = str(HERE.parent / "tests")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"support.{module}")
    finally:
        sys.path.remove(folder)


def node_versions() -> dict[str, str]:
    """Return which Node.js worker takes part, or why none does."""
    try:
        install = node_install()
    except NotMeasuredError as error:
        return {"Node.js worker": f"not here: {error}"}
    asked = subprocess.run([str(install.node), "--version"], text=True, capture_output=True, env=dict(os.environ))
    return {"Node.js worker": f"graphile-worker {install.version}, Node.js {asked.stdout.strip()}"}
