"""The commands, one module each; this list is what `gw --help` shows without loading them."""

from __future__ import annotations

from typing import Final

from gw_cli.command import CommandInfo

ENTRIES: Final = (
    CommandInfo("run", "Running jobs", "Run jobs until told to stop, or with --once until none is left."),
    CommandInfo("add", "Jobs", "Add a job."),
    CommandInfo("list", "Looking", "List jobs."),
    CommandInfo("show", "Looking", "Show everything about one job."),
    CommandInfo("stats", "Looking", "Count the jobs by state."),
    CommandInfo("queues", "Looking", "List named queues."),
    CommandInfo("tasks", "Looking", "List the tasks the database knows."),
    CommandInfo("tui", "Looking", "Watch the queue live in a terminal, and mend it."),
    CommandInfo("remove", "Jobs", "Remove the job with a key."),
    CommandInfo("cron", "Jobs", "Look at recurring tasks."),
    CommandInfo("complete", "Jobs", "Delete jobs as if they had been completed."),
    CommandInfo("fail", "Jobs", "Fail jobs for good, so that they are not tried again."),
    CommandInfo("reschedule", "Jobs", "Change when and how jobs will run."),
    CommandInfo("retry", "Jobs", "Let failed jobs run again now."),
    CommandInfo("cancel", "Jobs", "Stop running jobs: their tasks are told, and their attempts fail for good."),
    CommandInfo("unlock", "Jobs", "Take every job and queue from workers that are dead, for others to run."),
    CommandInfo("workers", "Workers", "List the workers that run, and those that went silent."),
    CommandInfo("sweep", "Workers", "Give back the jobs of workers that went silent."),
    CommandInfo("migrate", "Setting up", "Install the schema, or bring it up to date."),
    CommandInfo("config", "Setting up", "Look at the configuration."),
    CommandInfo("init", "Setting up", "Make a folder for tasks, an example, a crontab and a configuration."),
    CommandInfo("dev", "Setting up", "Run jobs while you write tasks, and read changed files again."),
    CommandInfo(
        "cleanup", "Keeping", "Clear away jobs that failed for good, unused task identifiers and unused queues."
    ),
    CommandInfo("doctor", "Keeping", "Say what is wrong with the queue, and what mends it."),
    CommandInfo("bench", "Keeping", "Measure how fast a queue would be in this database."),
    CommandInfo("health", "Keeping", "Say whether the queue answers, for probes."),
)
