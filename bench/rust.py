"""graphile_worker_rs from crates.io, as `make rust-bench` builds it: optimized, in the fastest configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

from bench.harness import NotMeasuredError
from bench.peers import HERE, OnTheSharedSchema, task_environment
from bench.processes import Command, run_together

VERSION: Final = "0.14.1"
SOURCE: Final = HERE / "programs" / "rust_worker.rs"
BUILT: Final = HERE.parent / "build" / "rust"
PROGRAM: Final = BUILT / "release" / f"rust-worker-{VERSION.replace('.', '-')}"


@dataclass(frozen=True, slots=True)
class Rust(OnTheSharedSchema):
    """The worker with a local queue, batched completions and LISTEN, without log lines."""

    finishes: bool = True

    def install(self, url: str) -> None:
        """Make an empty database ready."""
        with TemporaryDirectory() as folder:
            run_together([self._command(Path(folder), "install", url)])

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return the program that ends when a claim finds no job, or runs until it is stopped."""
        return self._command(folder, "once" if once else "run", url)

    def bulk_add(self, url: str, folder: Path, count: int, queues: int) -> Command:
        """Return a program that adds jobs through `add_raw_jobs` and prints how many seconds that took."""
        return self._command(folder, "add", url, str(count), str(queues))

    @staticmethod
    def _command(folder: Path, action: str, url: str, *more: str) -> Command:
        if not is_built():
            raise NotMeasuredError("graphile_worker_rs is not built; make rust-bench builds it")
        argv = (str(PROGRAM), action, _with_host(url), *more)
        return Command(argv=argv, folder=folder, environment=task_environment(folder))


def is_built() -> bool:
    """Return whether the program there is was built from the present source."""
    built_from = BUILT / "bench.rs"
    return PROGRAM.exists() and built_from.exists() and built_from.read_bytes() == SOURCE.read_bytes()


def rust_version() -> dict[str, str]:
    """Return which worker takes part."""
    return {"Rust worker": f"graphile_worker_rs {VERSION}" if is_built() else "not here: it is not built"}


def _with_host(url: str) -> str:
    """Return the URL with a host, which sqlx demands and a parameter replaces."""
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    user, password, database = (quote(given.pop(name, ""), safe="") for name in ("user", "password", "dbname"))
    login = f"{user}:{password}" if password else user
    return f"postgresql://{login}@localhost/{database}?{urlencode(given)}"
