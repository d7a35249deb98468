"""A bulk of jobs takes as many statements for many jobs as for two, whatever the options of its jobs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture

from gw_core import Client, JobSpec

HOUR: Final = timedelta(hours=1)
OPTIONS: Final[Mapping[str, Callable[[int], dict[str, Any]]]] = {
    "payload": lambda n: {"payload": [n]},
    "queue_name": lambda n: {"queue_name": f"q{n}"},
    "run_at": lambda n: {"run_at": n * HOUR},
    "max_attempts": lambda n: {"max_attempts": n + 1},
    "job_key": lambda n: {"job_key": f"k{n}"},
    "job_key_mode": lambda n: {"job_key": f"k{n}", "job_key_mode": "preserve_run_at"},
    "priority": lambda n: {"priority": n},
    "flags": lambda n: {"flags": [f"f{n}"]},
    "unique_for": lambda n: {"unique_for": (n + 1) * HOUR},
    "expires_at": lambda n: {"expires_at": (n + 1) * HOUR},
    "slots": lambda n: {"slots": "api:4"},
}
SINGLE: Final = {"after", "on_failure"}
"""Options of jobs that wait for others: each has a statement of its own."""


@pytest.mark.parametrize("other", ["payload", "unique_for", "expires_at"])
def test_many_jobs_take_as_many_statements_as_two(site: QueueFixture, proxy: DatabaseProxy, other: str) -> None:
    # A job that is unique for a time has no job key mode.
    options = {*OPTIONS} - ({"job_key_mode"} if other == "unique_for" else set())

    with Client(proxy.url) as client:
        client.add("first")

        def statements(option: str, numbers: range) -> int:
            """Return how many statements add these jobs over a connection that has added one before."""
            specs = [
                JobSpec(**{"task": "work", "payload": {"n": n}, **OPTIONS[other](n), **OPTIONS[option](n)})
                for n in numbers
            ]
            recorded = proxy.record()
            assert len(set(client.add_many(specs))) == len(specs)
            return len(recorded)

        for option in sorted(options):
            assert statements(option, range(2)) == statements(option, range(2, 100)), option
            site.rows("truncate _private_jobs, _private_gw_unique cascade")


def test_every_option_is_tried() -> None:
    assert {*OPTIONS, *SINGLE, "task"} == {*inspect.signature(JobSpec).parameters}
