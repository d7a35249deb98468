"""The lists of the admin: which queue they show, their filters, pages and dates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from django import VERSION
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import DatabaseError, connections, transaction
from django.db.models import Max, Min
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from gw_core import Client, JobState
from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import queues
from gw_core.contrib.django.models import Job, QueueQuerySet, Schedule
from gw_core.contrib.django.templatetags.graphile_worker import visible
from gw_core.errors import GraphileWorkerError
from gw_core.front_ends import FrontEnd, NameKind

MAX_ID: Final = 2**63 - 1
MAX_COUNT: Final = 10_000
"""How far the admin counts and turns pages; filters and the search find other jobs."""
MAX_NAMES: Final = 50
"""How many tasks or queues a filter offers; the search finds the others."""
SEARCH_TIMEOUT: Final = timedelta(seconds=3)
KINDS: Final = ("year", "month", "day")


# -- queues ------------------------------------------------------------------------------------------------------------


def queue_number(request: Any) -> int:
    """Return the number of the queue that a request names, the first one if it names none."""
    kept = parse_qs(request.GET.get("_changelist_filters", ""))
    text = request.GET.get("queue") or next(iter(kept.get("queue", [])), "0")
    number = number_of(text)
    if number is None or number >= len(queues()):
        raise Http404
    return number


def number_of(text: str) -> int | None:
    """Return a number of a request; None if it is none, or larger than any id."""
    return int(text) if text.isdecimal() and len(text) <= len(str(MAX_ID)) and int(text) <= MAX_ID else None


class Facts(msgspec.Struct, frozen=True):
    """What the filters of a list offer."""

    tasks: Sequence[str] = ()
    queues: Sequence[str] = ()
    states: Mapping[str, str] = msgspec.field(default_factory=dict)
    """How many jobs are in a state, with the mark of an estimate."""


def facts_of(request: Any) -> Facts:
    """Return the facts about the queue of a request; nothing of a queue that cannot be read."""
    found: Facts | None = getattr(request, "_graphile_worker_facts", None)
    if found is None:
        try:
            with open_client(*queues()[queue_number(request)], application_name="gw admin") as client:
                tasks = FrontEnd(client).names(NameKind.TASKS, limit=MAX_NAMES)
                names = FrontEnd(client).names(NameKind.QUEUES, limit=MAX_NAMES)
                counts = client.counts().states
                found = Facts(tasks, names, {state.value: str(counts[state]) for state in JobState if state in counts})
        except GraphileWorkerError:
            found = Facts()
        request._graphile_worker_facts = found
    return found


class QueueFilter(admin.SimpleListFilter):
    """Chooses the queue; a project with one queue does not see it."""

    title = "schema"
    parameter_name = "queue"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the queues of all backends."""
        found = queues()
        return [(str(n), f"{schema} in {alias}") for n, (alias, schema) in enumerate(found)] if len(found) > 1 else []

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """Yield the queues; one of them is always selected."""
        for value, title in self.lookup_choices:
            selected = value == (self.value() or "0")
            yield {"selected": selected, "query_string": f"?queue={value}", "display": title}

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the rows as they are: the admin has asked the right queue."""
        return queryset


class StateFilter(admin.SimpleListFilter):
    """Chooses the state of jobs."""

    title = parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states, with the number of jobs."""
        counts = facts_of(request).states
        return [(each.value, f"{each.value} ({counts[each.value]})" if counts else each.value) for each in JobState]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the jobs in the state."""
        return queryset.in_state(self.value()) if self.value() in set(JobState) else queryset


class NameFilter(admin.SimpleListFilter):
    """Chooses the jobs of a task or of a queue."""

    field = ""

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the jobs with this name."""
        return queryset if self.value() is None else queryset.filter(**{self.field: self.value()})


class TaskFilter(NameFilter):
    """Chooses the jobs of a task."""

    title = parameter_name = field = "task"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the tasks in the database."""
        return [(name, visible(name)) for name in facts_of(request).tasks]


class SerialQueueFilter(NameFilter):
    """Chooses the jobs of a serial queue."""

    title = "serial queue"
    parameter_name = field = "queue_name"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the serial queues in the database."""
        return [(name, visible(name)) for name in facts_of(request).queues]


class OutcomeFilter(admin.SimpleListFilter):
    """Chooses how attempts ended."""

    title = parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states in which attempts end."""
        return [(state, state) for state in ("completed", "retried", "failed", "removed")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the attempts that ended so; an index serves those that did not complete."""
        return queryset if self.value() is None else queryset.filter(state=self.value())


# -- lists -------------------------------------------------------------------------------------------------------------


@contextmanager
def time_limit(database: str) -> Iterator[None]:
    """Let the statements of a block end in time: no index serves every filter."""
    milliseconds = int(SEARCH_TIMEOUT / timedelta(milliseconds=1))
    with transaction.atomic(using=database):
        with connections[database].cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, true)", [str(milliseconds)])
        yield


class AtLeast(int):
    """A number that is shown as one of more."""

    def __str__(self) -> str:
        return f"{int(self)}+"


class BoundedPaginator(Paginator):
    """Counts no further than `MAX_COUNT`, so that no page costs more because the queue is longer."""

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, or `MAX_COUNT`; in the order of the list, which chooses the index."""
        found: int = self.object_list[: MAX_COUNT + 1].count()
        return AtLeast(MAX_COUNT) if found > MAX_COUNT else found


class DatedQuerySet(QueueQuerySet):
    """Rows whose dates are not read from every row: those between the ends of the whole queue are offered."""

    ends: Mapping[str, datetime | None] = {}
    """The first and the last time."""
    chosen: Sequence[int] = ()
    """The year, the month and the day that the list shows, as far as they are chosen."""

    def aggregate(self, *expressions: Any, **named: Any) -> Any:
        """Return the ends, which choose whether years, months or days are offered first."""
        return self.ends or super().aggregate(*expressions, **named)

    def datetimes(self, field_name: str, kind: str, *arguments: Any, **options: Any) -> Any:
        """Return the years, months or days, some of which may have no row."""
        first, last = (_day(each) for each in self.ends.values())
        if first is None or last is None:
            return []
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        chosen, depth = tuple(self.chosen), KINDS.index(kind) + 1
        parts = {(day.year, day.month, day.day)[:depth] for day in days}
        found = sorted(each for each in parts if each[: len(chosen)] == chosen)
        return [datetime(*each, *(1, 1)[: 3 - len(each)]) for each in found]  # type: ignore[arg-type]


def _day(time: datetime | None) -> date | None:
    if time is None:
        return None
    return (timezone.localtime(time) if timezone.is_aware(time) else time).date()


class QueueChangeList(ChangeList):
    """A list whose rows are read in time, while the request is answered and not while the page is written."""

    def __init__(self, request: Any, *arguments: Any, **options: Any) -> None:
        self.queue = queue_number(request)
        self.date_hierarchy: Any
        self.queryset: Any
        self.result_list: Any
        self.root_queryset: Any
        super().__init__(request, *arguments, **options)

    def get_results(self, request: Any) -> None:
        """Read one page; the list that cannot be read in time is empty."""
        try:
            with time_limit(self.queryset.db):
                super().get_results(request)
                self.result_list = [_shown(row) for row in self.result_list]
                if self.date_hierarchy:
                    self.queryset.ends = self.model_admin.ends(self.root_queryset)
                    chosen = (self.params.get(f"{self.date_hierarchy}__{kind}") for kind in KINDS)
                    self.queryset.chosen = [int(each) for each in chosen if each]
        except DatabaseError as error:
            self.model_admin.message_user(request, f"The list cannot be read: {error}", messages.ERROR)
            self.date_hierarchy = None
            self.queryset = self.root_queryset = self.model.no_rows.all()
            super().get_results(request)

    def url_for_result(self, result: Any) -> str:
        """Return the page of the job, also for an attempt."""
        url = reverse(f"{self.model_admin.admin_site.name}:graphile_worker_job_change", args=[result.pk])
        return f"{url}?queue={self.queue}" if self.queue else url


def _shown(row: Any) -> Any:
    """Return a row whose texts are visible, in every column that a list may show."""
    for field in row._meta.concrete_fields:
        if isinstance(text := getattr(row, field.attname), str):
            setattr(row, field.attname, visible(text))
    return row


ORDERS: Final = {"failed": ("-run_at", "-id"), "running": ("-locked_at", "-id")}
"""The orders of the indexes that have the jobs of a state."""


class QueueAdmin(admin.ModelAdmin):
    """Shows rows of a queue, which are changed by actions only."""

    actions_on_bottom = True
    list_max_show_all = 0
    list_per_page = 50
    paginator = BoundedPaginator
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False

    def message_user(self, request: Any, message: Any, *arguments: Any, **options: Any) -> None:
        """Show a message; names and errors in it come from the database."""
        super().message_user(request, visible(message), *arguments, **options)

    def get_queryset(self, request: Any) -> Any:
        """Return the rows of the queue of the request."""
        found = self.model.objects.of_queue(*queues()[queue_number(request)])
        return DatedQuerySet(self.model, query=found.query, using=found.db)

    def ends(self, rows: Any) -> Any:
        """Return the first and the last time of the date hierarchy, which an index serves."""
        return rows.aggregate(first=Min(self.date_hierarchy), last=Max(self.date_hierarchy))

    def get_object(self, request: Any, object_id: str, from_field: str | None = None) -> Any:
        """Return the row with this key, the first one of several; None for a key that cannot be one."""
        key = object_id.replace("\x00", "") if self.model is Schedule else number_of(object_id)
        row = self.get_queryset(request).filter(pk=key).first() if key else None
        return row and _shown(row)

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        """Show the list; Django itself fails for a date that is out of range."""
        try:
            return super().changelist_view(request, extra_context)
        except OverflowError as error:
            raise Http404 from error

    def get_changelist(self, request: Any, **options: Any) -> type[ChangeList]:
        """Return the class of the list."""
        return QueueChangeList

    def has_add_permission(self, request: Any) -> bool:
        """Jobs are added by programs."""
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Rows cannot be edited."""
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """Rows cannot be deleted."""
        return False

    def _response(self, request: Any, template: str, title: str, **context: Any) -> Any:
        request.current_app = self.admin_site.name  # to which the links of the templates lead
        number = queue_number(request)
        alias, schema = queues()[number]
        site = self.admin_site.name
        list_url = reverse(f"{site}:graphile_worker_job_changelist") + (f"?queue={number}" if number else "")
        crumbs = [
            (reverse(f"{site}:index"), "Home"),
            (reverse(f"{site}:app_list", args=[self.opts.app_label]), self.opts.app_config.verbose_name),
            *([(list_url, "Jobs")] if self.model is Job else []),
        ]
        known = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "queue": number,
            "schema": f"{schema} in {alias}" if len(queues()) > 1 else "",
            "list_url": list_url,
            "crumbs": crumbs,
            "crumbs_are_items": VERSION >= (6, 1),
        }
        return TemplateResponse(request, f"graphile_worker/{template}.html", {**known, **context})

    def _client(self, request: Any) -> Client:
        database, schema = queues()[queue_number(request)]
        return open_client(database, schema, application_name="gw admin", conn=lambda: connections[database])
