"""`python -m bench.program_loop`: how long requests wait while a worker runs async tasks on their event loop.

A program serves requests, each a transaction, and runs its tasks: in turn as tasks of asyncio, and as jobs of a worker
inside the program. What the second takes longer than the first is due to gw. With `--cpu`, CPU time is measured, which
other processes do not change: that of gw's own callbacks on the loop, and that of all threads of the program while the
loop waits for its next iteration. `DATABASE_URL` names the server.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from gw_core import AsyncClient, JobSpec, Runner, TaskRegistry, WorkerSettings

URL = os.environ["DATABASE_URL"]
DRIVER_URL = make_url(URL).set(drivername="postgresql+asyncpg")


class Program:
    """A program on one event loop: its requests, its tasks, and how late both are."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.count: int = options.tasks
        self._rate: float = options.rate
        self._seconds: float = options.seconds
        self._request_engine: AsyncEngine = create_async_engine(DRIVER_URL, pool_size=10, pool_timeout=600)
        self._task_engine: AsyncEngine = create_async_engine(DRIVER_URL, pool_size=5, max_overflow=0, pool_timeout=600)
        self.queue = AsyncClient(pool=self._request_engine)
        self.tasks = TaskRegistry()
        self.tasks.register("work", self.work)
        self._running = 0
        self.most = 0
        self.ended = 0
        self.delays: list[float] = []
        self.cpu_delays: list[float] = []
        self.requests: list[float] = []

    async def work(self, payload: Any) -> None:
        """Commit a row, and wait as for a remote service."""
        self._running += 1
        self.most = max(self.most, self._running)
        async with self._task_engine.begin() as connection:
            await connection.execute(text("insert into bench_written values ('task')"))
        await asyncio.sleep(self._seconds)
        self._running -= 1
        self.ended += 1

    async def request(self) -> None:
        """Serve a request, which writes a row and adds a job in its transaction."""
        began = time.perf_counter()
        async with self._request_engine.begin() as connection:
            await connection.execute(text("insert into bench_written values ('request')"))
            await self.queue.add("later", conn=connection)
        self.requests.append(time.perf_counter() - began)

    async def serve(self) -> None:
        """Start requests at the rate until cancelled, and then wait for those that are in progress."""
        due, serving = time.perf_counter(), set()
        try:
            while True:
                due += 1 / self._rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                serving.add(asyncio.create_task(self.request()))
        finally:
            await asyncio.gather(*serving)

    async def watch(self) -> None:
        """Measure how late the loop calls what is due."""
        while True:
            began, cpu_began = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            self.delays.append(time.perf_counter() - began - 0.001)
            self.cpu_delays.append(time.process_time() - cpu_began)

    async def measured(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run the tasks beside the requests, and check that every commit is in the database."""
        async with self._request_engine.begin() as connection:
            for statement in (
                "drop table if exists bench_written",
                "create table bench_written (what text)",
                "delete from graphile_worker._private_jobs",
            ):
                await connection.execute(text(statement))
        beside = [asyncio.create_task(each()) for each in (self.serve, self.watch)]
        await run()
        for each in beside:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each
        async with self._request_engine.begin() as connection:
            written = (await connection.execute(text("select count(*) from bench_written"))).scalar_one()
        assert (self.ended, written) == (self.count, self.count + len(self.requests)), "commits are lost"
        await self._request_engine.dispose()
        await self._task_engine.dispose()

    async def as_tasks(self) -> None:
        """Run the tasks without gw."""
        await asyncio.gather(*(self.work({}) for _ in range(self.count)))

    async def as_jobs(self) -> None:
        """Run the tasks in a worker on the loop."""
        await self.queue.add_many([JobSpec(task="work") for _ in range(self.count)])
        async with Runner(URL, tasks=self.tasks, settings=WorkerSettings(concurrency=self.count)):
            while self.ended < self.count:
                await asyncio.sleep(0.01)


class GwTime:
    """The CPU time of gw's callbacks on the loop: of each one, and of all in one iteration."""

    def __init__(self) -> None:
        self.callbacks: list[float] = []
        self.iterations: list[float] = []
        self._own = [(asyncio.Handle, "_run"), (asyncio.BaseEventLoop, "_run_once")]
        self._before: list[Callable[[Any], None]] = [getattr(*each) for each in self._own]

    def __enter__(self) -> GwTime:
        handle_run, loop_run_once = self._before

        def run(handle: Any) -> None:
            began = time.thread_time()
            handle_run(handle)
            if is_of_gw(handle._callback):
                self.callbacks.append(time.thread_time() - began)

        def run_once(loop: Any) -> None:
            before = len(self.callbacks)
            loop_run_once(loop)
            if len(self.callbacks) > before:
                self.iterations.append(sum(self.callbacks[before:]))

        self._patch(run, run_once)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch(*self._before)

    def _patch(self, *functions: Callable[[Any], None]) -> None:
        for (owner, name), function in zip(self._own, functions, strict=True):
            setattr(owner, name, function)


def is_of_gw(callback: Any) -> bool:
    """Return whether a callback is a function of gw; the steps of a job's coroutine are those of its task."""
    while isinstance(callback, partial):
        callback = callback.func
    return str(getattr(callback, "__module__", "")).startswith("gw_core")


def milliseconds(values: list[float]) -> str:
    """Return the median, the 99th percentile and the maximum."""
    ordered = sorted(values)
    shown = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
    return " ".join(f"{each * 1000:7.1f}" for each in (*shown, ordered[-1]))


def print_cpu_times(options: argparse.Namespace) -> None:
    """Print the CPU times of both ways in alternating rounds, without Python's garbage collection.

    A full collection takes 20 to 75 ms here, with gw and without, and would hide everything else.
    """
    gc.collect()
    gc.disable()
    print("milliseconds of CPU time: p50, p99, max")
    for _ in range(options.rounds):
        for name in ("as_tasks", "as_jobs"):
            program = Program(options)
            with GwTime() as gw:
                asyncio.run(program.measured(getattr(program, name)))
            print(f"{name:8} the program, until the loop has its turn  {milliseconds(program.cpu_delays)}", flush=True)
        print(f"{name:8} gw, in one callback                       {milliseconds(gw.callbacks)}")
        print(f"{name:8} gw, in one iteration of the loop          {milliseconds(gw.iterations)}", flush=True)


def main() -> None:
    """Print the delays of the loop and the times of requests in alternating rounds."""
    parser = argparse.ArgumentParser(prog="python -m bench.program_loop")
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.cpu:
        print_cpu_times(options)
        return
    print(
        f"{'milliseconds':12} {'together':>8} {'the loop is late: p50, p99, max':>32} {'a request: p50, p99, max':>28}"
    )
    for _ in range(options.rounds):
        for name in ("as_tasks", "as_jobs"):
            program = Program(options)
            asyncio.run(program.measured(getattr(program, name)))
            late, taken = milliseconds(program.delays), milliseconds(program.requests)
            print(f"{name:12} {program.most:8} {late:>32} {taken:>28}", flush=True)


if __name__ == "__main__":
    main()
