"""The real Node.js worker from npm, in every version that matters, beside us on one schema.

node = node_worker("0.18.0")
node.install_schema(url)
with node.running(url, tasks=folder, jobs=4) as worker:
    ...
worker.output
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from support.npm import npm_package
from support.waiting import wait_until

FIRST_VERSION_WITH_BATCHES: Final = "0.17.3"
NEWEST: Final = "0.18.0"
VERSIONS: Final = ("0.14.0-rc.0", "0.15.1", "0.16.6", FIRST_VERSION_WITH_BATCHES, NEWEST)
ON_OUR_SCHEMA: Final = (pytest.param(FIRST_VERSION_WITH_BATCHES, marks=pytest.mark.slow), NEWEST)
"""The versions that run beside ours; what the older one does differently is for `make nightly`."""

# All versions run under one Node.js, so that what the machine has does not matter; 0.18 needs 22.
NODE_MAJOR: Final = 22
READY: Final = "Worker connected and looking for jobs"

LISTENING: Final = """
select from pg_stat_activity
 where datname = current_database()
   and query ilike 'listen%' and state = 'idle' and application_name = ''
"""

RUNNER: Final = """
import { createRequire } from "node:module";
const { entry, url, schema, input } = JSON.parse(process.env.GW_INTEROP);
const require = createRequire(entry);
const logger = console.log;
console.log = console.info = console.error;
const module = await import("file://" + entry);
const lib = { ...module.default, ...module };
const answer = await (async () => { %s })();
logger("\\n=====" + JSON.stringify(answer ?? null));
process.exit(0);
"""


@dataclass(frozen=True, slots=True)
class NodeWorker:
    """One version of graphile-worker, installed."""

    version: str
    node: Path
    package: Path

    def install_schema(self, url: str, schema: str = "graphile_worker", *, revision: int | None = None) -> str:
        """Install or upgrade the schema, to an older revision if asked for (0.16.6 and before); return its output."""
        if revision is None:
            return self._cli(url, schema, "--schema-only").stderr
        forget_later = """
            const { migrations } = require("./generated/sql.js");
            for (const name of Object.keys(migrations)) if (parseInt(name, 10) > input) delete migrations[name];
            await lib.runMigrations({ connectionString: url, schema });
        """
        self.script(url, forget_later, schema=schema, value=revision)
        return ""

    def run_once(self, url: str, tasks: Mapping[str, str], *arguments: str, schema: str = "graphile_worker") -> str:
        """Run every job there is with `tasks` (name → body of `async (payload, helpers) => {}`); return the output."""
        with _folder_with(tasks) as folder:
            done = self._cli(url, schema, "--once", *arguments, folder=folder)
        return done.stdout + done.stderr

    def clean_up(self, url: str, tasks: Mapping[str, str], *what: str, schema: str = "graphile_worker") -> str:
        """Run `--cleanup` as a worker that knows `tasks`; return the output."""
        with _folder_with(tasks) as folder:
            done = self._cli(url, schema, "--cleanup", ",".join(what), folder=folder)
        return done.stdout + done.stderr

    @contextmanager
    def running(
        self,
        url: str,
        tasks: Mapping[str, str],
        *arguments: str,
        schema: str = "graphile_worker",
        preset: Mapping[str, Any] | None = None,
    ) -> Iterator[RunningWorker]:
        """A worker that runs until the block ends; it is connected when the block begins.

        `preset` has the options that the command line lacks, such as `localQueue`.
        """
        with _folder_with(tasks) as folder:
            if preset is not None:
                (folder / "graphile.config.js").write_text(f"module.exports = {json.dumps({'worker': preset})};\n")
            command = self._command(url, schema, *arguments)
            worker = RunningWorker(command, folder)
            try:
                worker.wait_until_ready()
                yield worker
            finally:
                worker.stop()

    def script(self, url: str, body: str, *, value: Any = None, schema: str = "graphile_worker") -> Any:
        """Run JavaScript that may use `lib` (the package), `url`, `schema` and `input`; return what it returns."""
        given = {"entry": str(self.package / "dist" / "index.js"), "url": url, "schema": schema, "input": value}
        done = subprocess.run(
            [str(self.node), "--no-warnings", "--input-type=module", "-"],
            input=RUNNER.replace("%s", body),
            env={**environment(), "GW_INTEROP": json.dumps(given)},
            text=True,
            capture_output=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.rsplit("=====", 1)[1])

    def with_utils(self, url: str, body: str, *, value: Any = None, schema: str = "graphile_worker") -> Any:
        """Run JavaScript that may use `utils`, the library's WorkerUtils."""
        opened = "const utils = await lib.makeWorkerUtils({ connectionString: url, schema });"
        return self.script(url, opened + body, value=value, schema=schema)

    def _cli(
        self, url: str, schema: str, *arguments: str, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self._command(url, schema, *arguments),
            cwd=folder or tempfile.gettempdir(),
            env=environment(),
            text=True,
            capture_output=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def _command(self, url: str, schema: str, *arguments: str) -> list[str]:
        cli = str(self.package / "dist" / "cli.js")
        return [str(self.node), "--no-warnings", cli, "--connection", url, "--schema", schema, *arguments]


class RunningWorker:
    """A worker process, and its output so far."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, name="node-output")
        self._reader.start()

    @property
    def output(self) -> str:
        """Everything the worker has written."""
        return "".join(self._lines)

    def wait_until_ready(self, words: str = READY) -> None:
        wait_until(lambda: words in self.output or self.process.poll() is not None, deadline_seconds=60, what=words)
        assert self.process.poll() is None, self.output

    def wait_until_ended(self, *, deadline_seconds: float = 60) -> int:
        """Wait until the process exits on its own and return its exit code."""
        code = self.process.wait(deadline_seconds)
        self._reader.join()
        return code

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the worker and wait for it; may be called twice."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)


def wait_until_node_listens(connection: psycopg.Connection[Any], workers: int = 1) -> None:
    """Wait for the statement itself: a worker of Node reports its connection too early."""
    wait_until(
        lambda: connection.execute(LISTENING).rowcount >= workers,
        deadline_seconds=60,
        what="a worker of Node to listen",
    )


# -- installing -------------------------------------------------------------------------------------------------------


@cache
def node_worker(version: str = NEWEST) -> NodeWorker:
    """Return this version of the worker, installed from npm on first use into a folder that outlives the run.

    Without npm the test is skipped; in CI it fails.
    """
    node = npm_package(f"node-{_system()}", str(NODE_MAJOR))
    return NodeWorker(version, node / "bin" / "node", npm_package("graphile-worker", version))


def _system() -> str:
    """Name the package with the binary for this machine; the package `node` would only choose it by a script."""
    kind = {"linux": "linux", "darwin": "darwin"}[sys.platform]
    return f"{kind}-{'arm64' if platform.machine() in ('arm64', 'aarch64') else 'x64'}"


def environment() -> dict[str, str]:
    """The environment without what would lead the worker to another database."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "GRAPHILE_", "GW_")) and name not in ("DATABASE_URL", "NODE_OPTIONS")
    }


@contextmanager
def _folder_with(tasks: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gw-node-") as name:
        for task, body in tasks.items():
            file = Path(name) / "tasks" / f"{task}.js"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"module.exports = async (payload, helpers) => {{ {body} }};\n")
        yield Path(name)
