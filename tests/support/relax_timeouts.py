"""Readers that wait as long as it takes: on a machine that stands still for seconds, no bound of theirs is met.

People who query a queue wait half a second, and the bounds of their statements are as short.
What the statements answer is another matter, and a test of it must not fail because the server was held up.
"""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest

from gw_core.front_ends import Jobs
from gw_core.postgres.read import job_queries, name_lookup, read_only, snapshots

LONG: timedelta = timedelta(minutes=2)


def relax_read_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the bounds of readers until the test ends; a test that is about one of them sets it again."""
    for module in (snapshots, job_queries):
        monkeypatch.setattr(module, "STATEMENT_TIMEOUT", LONG)
    for waiting in (snapshots, read_only):
        monkeypatch.setattr(waiting, "LOCK_TIMEOUT", LONG)
    monkeypatch.setattr(name_lookup, "SEARCH_TIMEOUT", LONG)
    for function, name in (
        (job_queries.JobQueries._rows, "timeout"),
        (job_queries.JobQueries.list_jobs, "timeout"),
        (Jobs.list, "timeout"),
    ):
        monkeypatch.setitem(inspect.unwrap(function).__kwdefaults__, name, LONG)
