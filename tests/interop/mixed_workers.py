"""Workers of Node.js, of Rust and ours on one schema, and a ledger in the database in which tasks write when they ran.

The tasks of Rust are compiled; tests/interop/rust_worker has them, and they do what `WAITS` does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from support.node_worker import NodeWorker, RunningWorker, environment, node_worker, wait_until_node_listens
from support.queue_fixture import QueueFixture
from support.rust_worker import wait_until_rust_listens
from support.waiting import wait_until
from support.warm_program import run_gw

Row = dict[str, Any]

GW: Final = Path(sys.executable).with_name("gw")
DEADLINE: Final = 60.0

LISTENING: Final = "listens for new jobs"

# What a task does on either side; `waits` stands still until the test opens the gate.
NOTES: Final = {
    "node": """
        const begins = await helpers.query("select public.job_begins($1, 'node') as entry", [helpers.job.id]);
        await helpers.query("select public.job_ends($1)", [begins.rows[0].entry]);
    """,
    "python": """
def run(payload, context):
    [[entry]] = context.query("select public.job_begins(%s, 'python')", [context.job.id])
    context.query("select public.job_ends(%s)", [entry])
""",
}
WAITS: Final = {
    "node": """
        const begins = await helpers.query("select public.job_begins($1, 'node') as entry", [helpers.job.id]);
        await helpers.query("select public.pass_gate()");
        if (payload.fails) throw new Error("as the test asked");
        await helpers.query("select public.job_ends($1)", [begins.rows[0].entry]);
    """,
    "python": """
def run(payload, context):
    [[entry]] = context.query("select public.job_begins(%s, 'python')", [context.job.id])
    context.query("select public.pass_gate()")
    if payload.get("fails"):
        raise RuntimeError("as the test asked")
    context.query("select public.job_ends(%s)", [entry])
""",
}

LEDGER: Final = """
create table public.ledger (
  entry serial primary key, job_id bigint not null, side text not null, task text not null, queue text, payload json,
  attempt int, priority int, run_at timestamptz, added_at timestamptz, begun timestamptz, ended timestamptz
);
create function public.job_begins(job bigint, side text) returns int language plpgsql as $$
declare
  written int;
begin
  insert into public.ledger (job_id, side, task, queue, payload, attempt, priority, run_at, added_at, begun)
  select jobs.id, job_begins.side, tasks.identifier, queues.queue_name, jobs.payload, jobs.attempts,
         jobs.priority, jobs.run_at, jobs.created_at, clock_timestamp()
    from graphile_worker._private_jobs as jobs
    join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id
    left join graphile_worker._private_job_queues as queues on queues.id = jobs.job_queue_id
   where jobs.id = job
  returning ledger.entry into strict written;
  return written;
end;
$$;
create function public.job_ends(written int) returns void language plpgsql as $$
begin
  update public.ledger set ended = clock_timestamp() where entry = written;
end;
$$;
create function public.pass_gate() returns void language sql as $$
  select pg_advisory_xact_lock_shared(1);
$$;
"""


class MixedQueue(QueueFixture):
    """A database in which both work, and the ledger; the schema need not be there yet."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.hands.execute(LEDGER.encode())

    # -- what ran

    def ledger(self, condition: str = "true", *values: Any) -> list[Row]:
        """The entries in the order in which jobs began."""
        return self.run(f"select * from public.ledger where {condition} order by begun, entry", *values)

    def wait_for(self, count: int, condition: str = "ended is not null", *values: Any) -> list[Row]:
        """Wait until this many entries are there."""

        def counted() -> int:
            [row] = self.run(f"select count(*) as found from public.ledger where {condition}", *values)
            return int(row["found"])

        what = f"{count} entries where {condition}"
        wait_until(lambda: counted() >= count, deadline_seconds=DEADLINE, what=what, every=0.05)
        return self.ledger(condition, *values)

    def overlaps(self) -> list[Row]:
        """Jobs that began before their predecessor in the queue had ended."""
        return self.run(
            "select * from (select *, lag(ended) over (partition by queue order by begun) as predecessor_ended"
            " from public.ledger where queue is not null) as entries where predecessor_ended > begun"
        )

    def out_of_order(self) -> list[Row]:
        """Jobs of the queues called `ordered-…` that began in another order than they should."""
        return self.run(
            "select * from (select *, row_number() over (partition by queue order by begun) as was,"
            " row_number() over (partition by queue order by priority, run_at, job_id) as should_be"
            " from public.ledger where queue like 'ordered-%%') as entries where was <> should_be"
        )

    def wait_until_settled(self, left: Sequence[int] = ()) -> None:
        """Wait until no job is left but these."""
        wait_until(
            lambda: self.run("select 1 from _private_jobs where id <> all(%s) limit 1", list(left)) == [],
            deadline_seconds=DEADLINE,
            what="every job to be settled",
        )

    def locks(self) -> list[Row]:
        return self.run(
            "select locked_by from _private_jobs where locked_at is not null or locked_by is not null"
            " union all select locked_by from _private_job_queues where not is_available or locked_by is not null"
        )

    def wait_until_node_listens(self, workers: int = 1) -> None:
        wait_until_node_listens(self.hands, workers)

    def wait_until_rust_listens(self, workers: int = 1) -> None:
        wait_until_rust_listens(self.hands, workers)

    # -- what holds jobs up

    @contextmanager
    def closed_gate(self) -> Iterator[Gate]:
        """Let tasks that wait stand still until the gate is opened, or the block ends."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            gate = Gate(connection)
            try:
                yield gate
            finally:
                gate.open()

    # -- the installed program

    def gw(self, *arguments: str) -> str:
        """Run the program to its good end; return what it printed."""
        words = (arguments[0], "--connection", self.url, *arguments[1:])
        done = run_gw(words, folder=tempfile.gettempdir(), environment=environment())
        assert done.code == 0, done.err
        return done.out

    def gw_run_once(self, tasks: Mapping[str, str]) -> str:
        """Let ours run what it can and return its output."""
        with self.gw_running(tasks, "--once") as worker:
            assert worker.wait_until_ended() == 0, worker.output
        return worker.output

    @contextmanager
    def gw_running(self, tasks: Mapping[str, str], *arguments: str) -> Iterator[RunningWorker]:
        """Our worker as a process, until the block ends; it is on its way when the block begins."""
        with tempfile.TemporaryDirectory(prefix="gw-ours-") as name:
            for task, text in tasks.items():
                file = Path(name) / "tasks" / f"{task}.py"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            worker = RunningWorker([str(GW), "run", "--connection", self.url, "--verbose", *arguments], Path(name))
            try:
                yield worker
            finally:
                worker.stop()


class Gate:
    """Closed from the beginning."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        connection.execute("select pg_advisory_lock(1)")

    def open(self) -> None:
        """Let all tasks through; may be called twice."""
        if not self._connection.closed:
            self._connection.execute("select pg_advisory_unlock_all()")


class Kind:
    """A version of the worker and how it is set up."""

    def __init__(self, version: str, preset: Mapping[str, Any] | None = None) -> None:
        self.version = version
        self.preset = preset

    def __str__(self) -> str:
        return f"{self.version}-with-a-local-queue" if self.preset else self.version

    @property
    def node(self) -> NodeWorker:
        return node_worker(self.version)


BATCHES: Final = {
    "localQueue": {"size": 500},
    "completeJobBatchDelay": 0,
    "failJobBatchDelay": 0,
}


@contextmanager
def side_by_side(
    site: MixedQueue, kind: Kind, *, node: Mapping[str, str], python: Mapping[str, str], poll: str, jobs: int = 4
) -> Iterator[tuple[RunningWorker, RunningWorker]]:
    """A worker of Node and one of ours, both listening when the block begins; `poll` is in milliseconds."""
    options = ["--poll-interval", poll, "--jobs", str(jobs)]
    with ExitStack() as stack:
        ours = stack.enter_context(site.gw_running(python, *options))
        theirs = stack.enter_context(kind.node.running(site.url, node, *options, preset=kind.preset))
        site.wait_until_node_listens()
        ours.wait_until_ready(LISTENING)
        yield theirs, ours


def by_node(site: MixedQueue, node: NodeWorker, body: str, **values: Any) -> Any:
    """Let Node's WorkerUtils do something with `input`."""
    return node.with_utils(site.url, body, value=json.loads(json.dumps(values, default=str)))
