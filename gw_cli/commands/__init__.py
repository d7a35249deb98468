"""The commands, one module each; this list is what `gw --help` shows without loading them."""

from __future__ import annotations

from typing import Final

from gw_cli.frame import Entry

ENTRIES: Final = (
    Entry("run", "Running jobs", "Run jobs until told to stop, or with --once until none is left."),
    Entry("add", "Jobs", "Add a job."),
    Entry("list", "Looking", "List jobs."),
    Entry("show", "Looking", "Show everything about one job."),
    Entry("stats", "Looking", "Count the jobs by state."),
    Entry("queues", "Looking", "List named queues."),
    Entry("tasks", "Looking", "List the tasks the database knows."),
    Entry("remove", "Jobs", "Remove the job with a key."),
    Entry("cron", "Jobs", "Look at recurring tasks."),
    Entry("workers", "Workers", "List the workers that run, and those that went silent."),
    Entry("sweep", "Workers", "Give back the jobs of workers that went silent."),
    Entry("migrate", "Setting up", "Install the schema, or bring it up to date."),
    Entry("config", "Setting up", "Look at the configuration."),
)
