"""The admin page: a bounded list of jobs, one job, and the actions retry and cancel."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path

from gw_core import Client
from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import queues
from gw_core.contrib.django.models import Job
from gw_core.errors import GraphileWorkerError

PAGE: Final = 50
MAX_ID: Final = 2**63 - 1
CANCEL_TIMEOUT: Final = timedelta(seconds=3)
"""How long a request waits for running jobs to end."""


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    """Shows jobs through gw's client: the usual list of the admin would count the whole table."""

    def get_urls(self) -> list[Any]:
        """Return the two pages; the others of an admin would need a table."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path("<int:object_id>/", view(self.change_view), name=f"{name}_change"),
        ]

    def has_add_permission(self, request: Any) -> bool:
        """Jobs are added by programs."""
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Jobs cannot be edited."""
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """Jobs cannot be deleted."""
        return False

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        """Show the jobs of a selection, or run an action on the selected ones."""
        self._check_permission(request)
        if request.method == "POST":
            self._act(request)
            return redirect(request.get_full_path())
        return self._list(request)

    def change_view(self, request: Any, object_id: int, form_url: str = "", extra_context: Any = None) -> Any:
        """Show one job."""
        self._check_permission(request)
        if not 0 < object_id <= MAX_ID:
            raise Http404
        job, problem = None, None
        try:
            with self._client(request) as client:
                job = client.jobs.get(object_id)
        except GraphileWorkerError as error:
            problem = str(error)
        if job is None and problem is None:
            raise Http404
        return self._response(request, "job", f"Job {object_id}", job=job, problem=problem)

    def _list(self, request: Any) -> Any:
        text, after = request.GET.get("q", ""), request.GET.get("after") or None
        page, problem = None, None
        try:
            with self._client(request) as client:
                page = client.jobs.list(text, after=after, limit=PAGE)
        except GraphileWorkerError as error:
            problem = str(error)
        actions = [name for name in _ACTIONS if self._may(request, name)]
        return self._response(request, "jobs", "Jobs", text=text, page=page, problem=problem, actions=actions)

    def _act(self, request: Any) -> None:
        name = request.POST.get("action", "")
        if name not in _ACTIONS or not self._may(request, name):
            raise PermissionDenied
        numbers = [_number(each) for each in request.POST.getlist("job")]
        ids = [each for each in numbers if each is not None and 0 < each <= MAX_ID]
        try:
            with self._client(request) as client:
                report = _ACTIONS[name](client, ids, str(request.user)) if ids else "Select at least one job."
        except GraphileWorkerError as error:
            messages.error(request, str(error))
        else:
            messages.info(request, report)

    def _client(self, request: Any) -> Client:
        """Open a client for the queue of the request; most projects have one queue."""
        return open_client(*queues()[_queue_of(request)], application_name="gw admin")

    def _check_permission(self, request: Any) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _may(self, request: Any, action: str) -> bool:
        allowed: bool = request.user.has_perm(f"graphile_worker.{action}_job")
        return allowed

    def _response(self, request: Any, template: str, title: str, **context: Any) -> Any:
        queue, names = _queue_of(request), [f"{schema} in {alias}" for alias, schema in queues()]
        known = {**self.admin_site.each_context(request), "title": title, "opts": self.model._meta}
        known |= {"queue": queue, "queues": names if len(names) > 1 else []}
        return TemplateResponse(request, f"graphile_worker/{template}.html", {**known, **context})


def _queue_of(request: Any) -> int:
    """Return the number of the queue that a request names, the first one if it names none."""
    number = _number(request.GET.get("queue", "0"))
    if number is None or number >= len(queues()):
        raise Http404
    return number


def _number(text: str) -> int | None:
    """Return a number of a request; None if it is none, or larger than any id."""
    return int(text) if text.isdecimal() and len(text) <= len(str(MAX_ID)) else None


def _retry(client: Client, ids: list[int], user: str) -> str:
    result = client.jobs.retry(ids)
    skipped = ", ".join(f"{number} {reason}" for reason, number in result.skipped_by_reason.items())
    return f"Retried: {len(result.changed)}." + (f" Skipped: {skipped}." if skipped else "")


def _cancel(client: Client, ids: list[int], user: str) -> str:
    found = client.jobs.cancel(ids, by=user, reason="cancelled in the admin", timeout=CANCEL_TIMEOUT)
    counts = Counter(str(each.result) for each in found)
    return "Result: " + ", ".join(f"{number} {result}" for result, number in counts.items()) + "."


_ACTIONS: Final = {"retry": _retry, "cancel": _cancel}
