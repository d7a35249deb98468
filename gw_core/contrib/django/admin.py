"""The admin: the jobs of every queue with their history, the attempts that have ended, and the schedules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, ActionForm
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError
from django.db.models import Q
from django.http import Http404
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.text import Truncator

from gw_core import CronItem
from gw_core.contrib.django.admin_lists import (
    MAX_ID,
    MAX_NAMES,
    ORDERS,
    BoundedPaginator,
    OutcomeFilter,
    QueueAdmin,
    QueueFilter,
    SerialQueueFilter,
    StateFilter,
    TaskFilter,
    number_of,
    queue_number,
)
from gw_core.contrib.django.discovery import graphile_backends, queues
from gw_core.contrib.django.models import Attempt, Job, Schedule
from gw_core.errors import GraphileWorkerError
from gw_core.operations import EndedAttempt, JobStep, WaitingGroup

BATCH: Final = 1_000
MAX_VALUE: Final = 500
"""How many characters of the result of a step are shown."""
MAX_ENTRIES: Final = 1_000
"""How many jobs an action enters in the log of the admin one by one."""
CANCEL_TIMEOUT: Final = timedelta(seconds=3)
"""How long a request waits for running jobs to end."""


# -- jobs --------------------------------------------------------------------------------------------------------------


class JobActionForm(ActionForm):
    """The action, and the time for `reschedule`."""

    run_at = forms.CharField(
        required=False,
        label="Run at:",
        widget=forms.TextInput(attrs={"placeholder": "now", "size": 18, "title": "for the action Reschedule"}),
    )


@admin.register(Job)
class JobAdmin(QueueAdmin):
    """The jobs in the queue, one job with its payload and history, and actions."""

    action_form = JobActionForm
    actions = ("retry", "cancel", "complete", "reschedule", "pause", "resume")
    date_hierarchy = "created_at"
    list_display = ("id", "task", "state", "attempt", "error", "run_at", "queue_name", "key", "priority")
    list_filter = (QueueFilter, StateFilter, TaskFilter, SerialQueueFilter, ("created_at", admin.DateFieldListFilter))
    ordering = ("-id",)
    search_fields = ("task", "queue_name", "key", "locked_by")
    search_help_text = "An id, the beginning of a task, or a whole queue, key or worker"
    sortable_by = ("id",)

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        """Show the list, or run an action on the jobs with these ids; Django itself fails for other values."""
        if request.method == "POST":
            request.POST = request.POST.copy()
            ids = [each for each in request.POST.getlist(ACTION_CHECKBOX_NAME) if number_of(each)]
            request.POST.setlist(ACTION_CHECKBOX_NAME, ids)
        return super().changelist_view(request, extra_context)

    def ends(self, rows: Any) -> Any:
        """Return when the first and the last job were added; no index has that time, but ids are in its order."""
        added = rows.values_list(self.date_hierarchy, flat=True)
        return {"first": added.order_by("pk").first(), "last": added.order_by("-pk").first()}

    def get_ordering(self, request: Any) -> Sequence[str]:
        """Return the order of an index: the latest failure first, else the newest job."""
        return ORDERS.get(request.GET.get("state", ""), self.ordering)

    @admin.display(description="attempts")
    def attempt(self, job: Job) -> str:
        """Return the attempts that were made, and how many are allowed."""
        return f"{job.attempts} of {job.max_attempts}"

    @admin.display(description="error")
    def error(self, job: Job) -> str:
        """Return the beginning of the last error."""
        return str(Truncator(job.last_error or "").chars(80))

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Return the jobs that a text means."""
        text = search_term.strip().replace("\x00", "")
        if not text:
            return queryset, False
        if text.isdecimal():
            return queryset.filter(pk=number_of(text) or 0), False
        wanted = Q(task__startswith=text) | Q(queue_name=text) | Q(key=text) | Q(locked_by=text)
        return queryset.filter(wanted), False

    def change_view(self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show one job with its payload and its ended attempts, also after it has left the queue."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        number = number_of(object_id)
        if not number:
            raise Http404
        job = payload = problem = None
        attempts: Sequence[EndedAttempt] = ()
        steps: Sequence[JobStep] = ()
        groups: Sequence[WaitingGroup] = ()
        try:
            with self._client(request) as client:
                attempts = client.history.attempts(number)
                if found := client.jobs.get(number):
                    payload = found.payload
                    job = self.get_queryset(request).filter(pk=number).first()
                    groups = client.groups.list(number, limit=MAX_NAMES)
                steps = client.jobs.steps(number)
        except (GraphileWorkerError, DatabaseError) as error:
            problem = str(error)
        if job is None and not attempts and problem is None:
            raise Http404
        if payload is None and attempts:
            payload = attempts[-1].payload
        return self._response(
            request,
            "job",
            f"Job {number}",
            job=job,
            number=number,
            payload=_written(payload),
            attempts=[(each, _written(each.result) if each.result_json is not None else "") for each in attempts],
            groups=groups,
            steps=[(each, Truncator(each.value_json).chars(MAX_VALUE)) for each in steps[-MAX_NAMES:]],
            steps_before=max(len(steps) - MAX_NAMES, 0),
            problem=problem,
            actions=self._descriptions(request) if job else {},
        )

    def _descriptions(self, request: Any) -> dict[str, str]:
        return {name: getattr(self, name).short_description for name in self.get_actions(request)}

    # -- permissions, which `@admin.action` asks for

    def has_retry_permission(self, request: Any) -> bool:
        """Return whether a user may retry jobs."""
        return self._may(request, "retry")

    def has_cancel_permission(self, request: Any) -> bool:
        """Return whether a user may cancel jobs."""
        return self._may(request, "cancel")

    def has_complete_permission(self, request: Any) -> bool:
        """Return whether a user may complete jobs."""
        return self._may(request, "complete")

    def has_reschedule_permission(self, request: Any) -> bool:
        """Return whether a user may reschedule jobs."""
        return self._may(request, "reschedule")

    def has_pause_permission(self, request: Any) -> bool:
        """Return whether a user may pause and resume tasks."""
        return self._may(request, "pause")

    def _may(self, request: Any, action: str) -> bool:
        allowed: bool = request.user.has_perm(f"graphile_worker.{action}_job")
        return allowed

    # -- actions

    @admin.action(description="Retry now", permissions=["retry"])
    def retry(self, request: Any, queryset: Any) -> None:
        """Run failed jobs again now."""
        self._act(request, queryset, "Retried", lambda client, ids: client.jobs.retry(ids, by=str(request.user)))

    @admin.action(description="Complete: delete without running", permissions=["complete"])
    def complete(self, request: Any, queryset: Any) -> Any:
        """Delete waiting jobs, after a question."""
        if request.POST.get("confirmed"):
            return self._act(
                request, queryset, "Completed", lambda client, ids: client.jobs.complete(ids, by=str(request.user))
            )
        return self._question(request, queryset, "complete", "Delete these jobs as if they had been completed?")

    @admin.action(description="Reschedule to the time beside", permissions=["reschedule"])
    def reschedule(self, request: Any, queryset: Any) -> None:
        """Change when jobs run; a failed job gets an attempt again by `retry`."""
        times, index = request.POST.getlist("run_at"), number_of(request.POST.get("index", "")) or 0
        # The list has this form above and below it: the one of the button comes first, then the other.
        text = next(filter(None, (*times[index : index + 1], *times)), "")
        try:
            run_at = forms.DateTimeField(required=False).clean(text) or timezone.now()
        except ValidationError:
            self.message_user(request, f"{text!r} is not a time, such as 2026-12-24 18:00.", messages.ERROR)
            return
        if timezone.is_naive(run_at):
            run_at = timezone.make_aware(run_at)
        by = str(request.user)
        self._act(
            request, queryset, "Rescheduled", lambda client, ids: client.jobs.reschedule(ids, run_at=run_at, by=by)
        )

    @admin.action(description="Cancel: stop running jobs, fail waiting ones", permissions=["cancel"])
    def cancel(self, request: Any, queryset: Any) -> Any:
        """Stop running jobs and fail waiting ones permanently, after a question."""
        if not request.POST.get("confirmed"):
            return self._question(request, queryset, "cancel", "Cancel these jobs?")
        counts: Counter[str] = Counter()
        reason = f"cancelled in the admin by {request.user}"
        try:
            with self._client(request) as client:
                for ids in _batches(queryset):
                    failed = client.jobs.fail(ids, reason, by=str(request.user)).ids
                    running = [each for each in ids if each not in set(failed)]
                    found = client.jobs.cancel(running, by=str(request.user), timeout=CANCEL_TIMEOUT) if running else ()
                    counts.update(
                        ["cancelled"] * len(failed),
                    )
                    counts.update(str(each.result) for each in found)
                    self._enter(request, ids, "Cancelled")
        except GraphileWorkerError as error:
            self.message_user(request, str(error), messages.ERROR)
        if counts:
            self.message_user(request, "Result: " + ", ".join(f"{n} {result}" for result, n in counts.items()) + ".")
        return None

    @admin.action(description="Pause the tasks of these jobs", permissions=["pause"])
    def pause(self, request: Any, queryset: Any) -> None:
        """Start no further job of these tasks."""
        by = str(request.user)
        self._for_tasks(request, queryset, "Paused", lambda client, names: client.pauses.pause(*names, by=by))

    @admin.action(description="Resume the tasks of these jobs", permissions=["pause"])
    def resume(self, request: Any, queryset: Any) -> None:
        """Start the jobs of these tasks again."""
        by = str(request.user)
        self._for_tasks(request, queryset, "Resumed", lambda client, names: client.pauses.resume(*names, by=by))

    def _for_tasks(self, request: Any, queryset: Any, done: str, act: Any) -> None:
        names = sorted({name for ids in _batches(queryset, "task") for name in ids})
        try:
            with self._client(request) as client:
                act(client, [f"task:{name}" for name in names])
        except GraphileWorkerError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        self._enter(request, _batch(queryset), f"{done} the task")
        self.message_user(request, f"{done}: {', '.join(names)}.")

    def _act(self, request: Any, queryset: Any, done: str, act: Any) -> None:
        changed, skipped = 0, Counter[str]()
        try:
            with self._client(request) as client:
                for ids in _batches(queryset):
                    result = act(client, ids)
                    changed += len(result.ids)
                    skipped.update(result.skipped_by_reason)
                    self._enter(request, result.ids, done)
        except GraphileWorkerError as error:
            self.message_user(request, str(error), messages.ERROR)
        reasons = ", ".join(f"{number} {reason}" for reason, number in skipped.items())
        self.message_user(request, f"{done}: {changed}." + (f" Skipped: {reasons}." if reasons else ""))

    def _enter(self, request: Any, ids: Sequence[int], done: str) -> None:
        """Write the log entries of an action."""
        jobs = [Job(pk=each, task="job") for each in ids[:MAX_ENTRIES]]
        if jobs:
            LogEntry.objects.log_actions(request.user.pk, jobs, CHANGE, f"{done} in the admin.")

    def _question(self, request: Any, queryset: Any, action: str, question: str) -> Any:
        values = {
            "action": action,
            "question": question,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "across": request.POST.get("select_across", "0"),
            "shown": list(queryset[:20]),
            "number": str(BoundedPaginator(queryset, 1).count),
        }
        return self._response(request, "question", question, **values)


def _batches(queryset: Any, name: str = "pk") -> Iterator[list[Any]]:
    """Yield a value of the selected jobs, in batches by id: an action may take jobs out of the selection."""
    last = MAX_ID
    while rows := list(queryset.filter(pk__lte=last).order_by("-pk").values_list("pk", name)[:BATCH]):
        yield [value for _, value in rows]
        last = rows[-1][0] - 1


def _batch(queryset: Any) -> list[int]:
    return next(_batches(queryset), [])


def _written(value: Any) -> str:
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)


# -- attempts ----------------------------------------------------------------------------------------------------------


@admin.register(Attempt)
class AttemptAdmin(QueueAdmin):
    """The record of jobs that have ended, for tasks with history; each attempt leads to the page of its job."""

    date_hierarchy = "finished_at"
    list_display = ("job_id", "task", "attempt", "state", "failure", "started_at", "finished_at", "worker_id")
    list_filter = (QueueFilter, OutcomeFilter, TaskFilter)
    ordering = ("-finished_at",)
    search_fields = ("task",)
    search_help_text = "The id of a job, or the whole name of a task"
    sortable_by = ()

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Return the attempts of a job or a task."""
        text = search_term.strip().replace("\x00", "")
        if not text:
            return queryset, False
        return queryset.filter(pk=number_of(text) or 0) if text.isdecimal() else queryset.filter(task=text), False

    @admin.display(description="error")
    def failure(self, attempt: Attempt) -> str:
        """Return the beginning of the error."""
        return str(Truncator(attempt.error or "").chars(80))

    def change_view(self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Lead to the page of the job."""
        number = number_of(object_id)
        if not number:
            raise Http404
        return redirect(f"{self.admin_site.name}:graphile_worker_job_change", number)


# -- schedules ---------------------------------------------------------------------------------------------------------


@admin.register(Schedule)
class ScheduleAdmin(QueueAdmin):
    """The schedules of the project's tasks, and others that workers have registered."""

    ordering = ("identifier",)

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        """List the schedules, or run the task of one now."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        items, problem = _items(*queues()[queue_number(request)])
        may_run = request.user.has_perm("graphile_worker.run_schedule")
        if request.method == "POST":
            if not may_run:
                raise PermissionDenied
            self._run(request, items.get(request.POST.get("run", "")))
            return redirect(request.get_full_path())
        try:
            known = {each.identifier: each for each in self.get_queryset(request)}
        except DatabaseError as error:
            known, problem = {}, str(error)
        now = datetime.now(UTC)
        last_runs = {each: known[each].last_execution if each in known else None for each in {*items, *known}}
        rows = [
            {
                "identifier": each,
                "item": items.get(each),
                # A worker whose clock was ahead has left a last run that lies in the future.
                "next": items[each].schedule.next_after(max(now, last or now)) if each in items else None,
                "last": last,
            }
            for each, last in sorted(last_runs.items())
        ]
        links = [(n, f"{schema} in {alias}") for n, (alias, schema) in enumerate(queues())]
        context = {"rows": rows, "problem": problem, "may_run": may_run, "links": links if len(links) > 1 else []}
        return self._response(request, "schedules", "Schedules", **context)

    def change_view(self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Lead to the list, which shows everything."""
        return redirect(f"{self.admin_site.name}:graphile_worker_schedule_changelist")

    def _run(self, request: Any, item: CronItem | None) -> None:
        """Add the job of a schedule now; its next run comes when it is due."""
        if item is None:
            self.message_user(request, "This schedule is not one of the project's tasks.", messages.ERROR)
            return
        try:
            with self._client(request) as client:
                job = client.add(replace(item.job_spec(datetime.now(UTC), backfilled=False), run_at=None))
        except GraphileWorkerError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        schedule = [Schedule(pk=item.identifier)]
        LogEntry.objects.log_actions(request.user.pk, schedule, CHANGE, f"Added job {job.id} in the admin.")
        self.message_user(request, f"Added job {job.id}.")


def _items(database: str, schema: str) -> tuple[dict[str, CronItem], str | None]:
    """Return the schedules of the project's tasks in a queue, by identifier, and why some are missing."""
    from gw_core.contrib.django.worker import registry

    found: dict[str, CronItem] = {}
    for backend in graphile_backends():
        if (backend.settings.database, backend.settings.schema) == (database, schema):
            try:
                found |= {each.identifier: each for each in registry(backend.alias, list(backend.lanes)).cron_items}
            except Exception as error:  # noqa: BLE001 - whatever a module with tasks raises is shown
                return found, f"{type(error).__name__}: {error}"
    return found, None
