"""The tasks of the chaos suite.

One notes that it began, takes its time, perhaps fails, and notes that it ended; the other recurs, and notes for when.
"""

import itertools
import os
import time
from datetime import timedelta

from gw_core import RetryAfter, task

# One file for each process, and one write for each line: what a killed process wrote is there, and nothing is torn.
FILE = os.open(
    os.path.join(os.environ["GW_CHAOS_LEDGER"], f"{os.getpid()}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
)
RUNS = itertools.count(1)


@task("chaos")
def chaos(payload, context):
    """Run as its payload asks."""
    run, job = next(RUNS), context.job
    note("B", run, job.id, job.attempts, payload["n"], time.monotonic_ns(), time.time_ns())
    time.sleep(payload["ms"] / 1000)
    if job.attempts <= payload.get("fails", 0):
        note("E", run, "failed", time.monotonic_ns())
        if "again" in payload:
            raise RetryAfter(timedelta(milliseconds=payload["again"]), "as the plan has it")
        raise RuntimeError("as the plan has it")
    note("E", run, "ok", time.monotonic_ns())


@task("limited")
def limited(payload, context):
    """Run as its payload asks; few at a time."""
    chaos(payload, context)


@task("paced")
def paced(payload, context):
    """Run as its payload asks; few per second."""
    chaos(payload, context)


@task("tenant")
def tenant(payload, context):
    """Run as its payload asks; few at a time for each tenant."""
    chaos(payload, context)


@task("tick")
def tick(payload, context):
    """Run once for each minute and name."""
    note("T", payload["name"], context.job.payload["_cron"]["ts"], context.job.id)


def note(*words):
    """Append a line to the ledger."""
    os.write(FILE, (" ".join(map(str, words)) + "\n").encode())
