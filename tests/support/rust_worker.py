"""The real worker of graphile_worker_rs beside us on one schema, in the versions that matter.

rust = rust_worker("0.14.1")
rust.install_schema(url)
with rust.running(url, tasks=["job"], concurrency=4) as worker:
    ...
worker.output
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from support.node_worker import RunningWorker, environment
from support.waiting import wait_until

WITHOUT_RETIREMENTS: Final = "0.13.5"
"""The last version whose newest revision is 20; the later ones have 22."""
NEWEST_0_13: Final = "0.13.9"
NEWEST: Final = "0.14.1"
VERSIONS: Final = (WITHOUT_RETIREMENTS, NEWEST_0_13, NEWEST)
BESIDE_OURS: Final = (WITHOUT_RETIREMENTS, pytest.param(NEWEST_0_13, marks=pytest.mark.slow), NEWEST)
"""The versions for tests of what differs between them; in these, the two newest ones are alike."""

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "tests" / "interop" / "rust_worker" / "src" / "main.rs"
BUILT_FROM: Final = ROOT / "build" / "rust" / "main.rs"
BUILT: Final = ROOT / "build" / "rust" / "debug"

STARTS: Final = "starts as "
NAME: Final = "rust"
"""The application_name of its sessions."""

LISTENING: Final = "select from pg_stat_activity where datname = current_database() and application_name = %s"


@dataclass(frozen=True, slots=True)
class RustWorker:
    """One version of graphile_worker_rs, in a program that the tests have built."""

    version: str
    program: Path

    def install_schema(self, url: str, schema: str = "graphile_worker") -> None:
        """Install or upgrade the schema."""
        self.act(url, "migrate", schema=schema)

    def add(self, url: str, task: str, payload: Any, **spec: Any) -> dict[str, Any]:
        """Add a job and return some of its fields."""
        added: dict[str, Any] = self.act(url, {"add": {"task": task, "payload": payload, **spec}})
        return added

    def sweep(self, url: str, *, threshold_ms: int) -> dict[str, Any]:
        """Recover the jobs of dead workers; return who they were and how many jobs they had."""
        swept: dict[str, Any] = self.act(url, {"sweep": {"threshold_ms": threshold_ms}})
        return swept

    def run_once(self, url: str, tasks: Sequence[str], **settings: Any) -> None:
        """Run every job there is; the tasks are those of the program."""
        self.act(url, {"run_once": {"tasks": list(tasks), **settings}})

    def read_crontab(self, text: str, times: Sequence[datetime]) -> Any:
        """Return the items of a crontab, each with those of the times at which it is due, or the error."""
        return self.act("", {"crontab": {"text": text, "times": [time.isoformat() for time in times]}})

    def act(self, url: str, action: str | dict[str, Any], schema: str = "graphile_worker") -> Any:
        """Let the program do something and return its answer."""
        command = self._command(url, action, schema)
        done = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    @contextmanager
    def running(
        self, url: str, tasks: Sequence[str], *, check: bool = True, **settings: Any
    ) -> Iterator[RunningWorker]:
        """A worker that runs until the block ends; with `check` it has installed the schema when the block begins."""
        action = {"run": {"tasks": list(tasks), **settings}}
        worker = RunningWorker(self._command(url, action, "graphile_worker"), BUILT)
        try:
            if check:
                worker.wait_until_ready(STARTS)
            yield worker
        finally:
            worker.stop()

    def _command(self, url: str, action: str | dict[str, Any], schema: str) -> list[str]:
        return [str(self.program), json.dumps({"url": _url_of(url), "schema": schema, "action": action})]


def worker_id(worker: RunningWorker) -> str:
    """Return the id under which a worker locks jobs."""
    return worker.output.partition(STARTS)[2].split()[0]


def wait_until_rust_listens(connection: psycopg.Connection[Any], workers: int = 1) -> None:
    """Wait for the statement itself."""
    wait_until(
        lambda: connection.execute(LISTENING + " and query ilike 'listen%%'", (NAME,)).rowcount >= workers,
        deadline_seconds=60,
        what="a worker of Rust to listen",
    )


@cache
def rust_worker(version: str = NEWEST) -> RustWorker:
    """Return this version of the worker; where it is not built, the test is skipped."""
    program = BUILT / f"rust-worker-{version.replace('.', '-')}"
    if not program.exists():
        pytest.skip("graphile_worker_rs is not built; make rust-worker builds it in some minutes")
    # Each checkout changes the time of the source, so its text is compared.
    if BUILT_FROM.read_bytes() != SOURCE.read_bytes():
        pytest.skip("graphile_worker_rs was built with another main.rs; run make rust-worker")
    return RustWorker(version, program)


def _url_of(conninfo: str) -> str:
    """Return the URL that sqlx understands: it needs a host, which the parameter replaces."""
    parts = {name: value for name, value in conninfo_to_dict(conninfo).items() if value}
    user, password, database = (quote(str(parts.pop(name, "")), safe="") for name in ("user", "password", "dbname"))
    parts.pop("hostaddr", None)
    login = f"{user}:{password}" if password else user
    return f"postgresql://{login}@localhost/{database}?{urlencode(parts)}"
