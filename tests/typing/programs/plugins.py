"""Plugins, events, a worker and its settings."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta

from gw_core import (
    Addition,
    Client,
    Events,
    Job,
    JobContext,
    JobSpec,
    Plugin,
    Reject,
    Runner,
    Skip,
    TaskRegistry,
    WorkerSettings,
    run_once,
)
from gw_core.events import JobCompleted, JobFailed
from gw_core.types import RunTask


class Tenant(Plugin):
    def attach(self, events: Events) -> None:
        events.on(JobFailed, self.failed)

    def failed(self, event: JobFailed) -> None:
        print(event.job.id, event.error)

    def before_add(self, spec: JobSpec) -> JobSpec | Skip | Reject | None:
        if not isinstance(spec.payload, dict):
            return Reject("the payload must be an object")
        return replace(spec, payload={"tenant": 1, **spec.payload})

    def around_add(self, addition: Addition) -> AbstractContextManager[object]:
        return nullcontext(addition.ids)

    def around_run(self, job: Job, context: JobContext, run: RunTask) -> object:
        return Skip("paused") if "paused" in job.flags else run()


class Wrong(Plugin):
    def before_add(self, spec: JobSpec) -> str:  # wrong
        return spec.task

    def around_run(self, job: Job) -> object:  # wrong
        return job


tasks = TaskRegistry()
client = Client(plugins=[Tenant()])
settings = WorkerSettings(concurrency=4, poll_interval=timedelta(seconds=1))
runner = Runner("postgres:///shop", tasks=tasks, plugins=[Tenant()], settings=settings)


@runner.events.on(JobCompleted)
def completed(event: JobCompleted) -> None:
    print(event.job.task, event.error)


print(run_once("postgres:///shop", tasks=tasks).completed)

Client(plugins=[Tenant])  # wrong: the class
Client(plugin=[Tenant()])  # wrong
WorkerSettings(concurency=4)  # wrong
WorkerSettings(concurrency="4")  # wrong
Runner("postgres:///shop", tasks=tasks, settings={"concurrency": 4})  # wrong
runner.events.on(JobCompleted, lambda event: event.sconds)  # wrong
print(run_once("postgres:///shop", tasks=tasks).complete)  # wrong
