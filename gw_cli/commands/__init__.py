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
    Entry("tui", "Looking", "Watch the queue live in a terminal, and mend it."),
    Entry("remove", "Jobs", "Remove the job with a key."),
    Entry("cron", "Jobs", "Look at recurring tasks."),
    Entry("complete", "Jobs", "Delete jobs as if they had been completed."),
    Entry("fail", "Jobs", "Fail jobs for good, so that they are not tried again."),
    Entry("reschedule", "Jobs", "Change when and how jobs will run."),
    Entry("retry", "Jobs", "Let failed jobs run again now."),
    Entry("cancel", "Jobs", "Stop running jobs: their tasks are told, and their attempts fail for good."),
    Entry("unlock", "Jobs", "Take every job and queue from workers that are dead, for others to run."),
    Entry("workers", "Workers", "List the workers that run, and those that went silent."),
    Entry("sweep", "Workers", "Give back the jobs of workers that went silent."),
    Entry("migrate", "Setting up", "Install the schema, or bring it up to date."),
    Entry("config", "Setting up", "Look at the configuration."),
    Entry("init", "Setting up", "Make a folder for tasks, an example, a crontab and a configuration."),
    Entry("dev", "Setting up", "Run jobs while you write tasks, and read changed files again."),
    Entry("cleanup", "Keeping", "Clear away jobs that failed for good, unused task identifiers and unused queues."),
    Entry("doctor", "Keeping", "Say what is wrong with the queue, and what mends it."),
    Entry("bench", "Keeping", "Measure how fast a queue would be in this database."),
    Entry("health", "Keeping", "Say whether the queue answers, for probes."),
)
