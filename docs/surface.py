"""The public names on one page, by topic, with the calls of a client: `docs/reference/python.md`."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from public_names import EXAMPLE, MODULES as DOCUMENTED

from gw_core import Client

MODULES: Final = tuple(module for module in DOCUMENTED if not module.endswith(".django"))
"""The modules that can be imported without a project of Django."""

TOPICS: Final = {
    "Add jobs": """
        Client AsyncClient client.add client.try_add client.add_many client.add_batch client.remove client.result
        client.groups JobSpec JobKeyMode Job Client.sharded ShardedClient AsyncShardedClient SessionLimits
        operations.JobGroup operations.WaitingGroup operations.RemovedJob client.close client.events
    """,
    "Write tasks": """
        task TaskRegistry Task JobContext GiveUp RetryAfter Snooze Interrupted StopSignal StopReason CronRun
        current_job JobLogFilter
    """,
    "Schedule recurring tasks": """
        cron cron_item CronItem crontab.Schedule crontab.every_minute crontab.every_n_minutes crontab.hourly_at
        crontab.daily_at crontab.weekly_on crontab.monthly_on crontab.yearly_on crontab.parse_crontab
        crontab.read_crontab client.cron operations.KnownCronItem
    """,
    "Run workers": "Runner run run_once RunResult WorkerSettings RecoverySettings ProbeSettings",
    "Query and change jobs": """
        client.jobs client.counts Selection selection.parse selection.Which JobState operations.JobPage
        operations.JobReport operations.SelectionCount operations.ActionResult operations.CancelledJob
        operations.QueueCounts operations.JobStep
    """,
    "Look after the queue": """
        client.queues client.tasks client.workers client.pauses client.limits client.history client.cleanup
        client.doctor operations.QueueReport operations.TaskReport operations.RunStatistics operations.RunSeries
        operations.WorkerInfo operations.SweepReport operations.Pause operations.PauseResult operations.TaskLimit
        operations.EndedAttempt operations.HistoryPage operations.RecordedAction operations.Finding
    """,
    "Install the schema and give rights": """
        client.migrate client.migration_plan client.migration_script client.check_schema client.schema client.grants
        operations.MigrationPlan operations.MigrationReport operations.Grant client.is_embedded
        embedded.start_or_attach embedded.EmbeddedServer
    """,
    "Extend": """
        Plugin Addition Skip Reject recovery.Decision recovery.Reschedule recovery.FailWithBackoff
        recovery.SkipRecovery Events Event opentelemetry.OpenTelemetry sentry.Sentry
    """,
    "Events": "events.*",
    "Errors": "errors.*",
    "Test": "testing.*",
    "Annotate": "types.* __version__",
}
"""Each public name and each member of a client, by what a reader wants to do."""


def members() -> dict[str, Any]:
    """Return everything public by its name without `gw_core`: names of modules, and members of a client."""
    found = {f"client.{name}": member for name, member in _public(Client)}
    for module in MODULES:
        short = module.removeprefix("gw_core").removeprefix(".").removeprefix("contrib.")
        names = getattr(importlib.import_module(module), "__all__", None) or _own(module)
        found |= {".".join(filter(None, (short, name))): (module, name) for name in names}
    return found


def _own(module: str) -> list[str]:
    values = vars(importlib.import_module(module)).items()
    return [name for name, value in values if not name.startswith("_") and getattr(value, "__module__", "") == module]


def _public(kind: type) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(kind, name)


def topics() -> Iterator[tuple[str, list[str]]]:
    """Yield each topic with what belongs to it; raises `LookupError` where the list above misses or repeats one."""
    left = members()
    del left["client.sharded"]  # it stands there as a method of the class
    for topic, listed in TOPICS.items():
        names = [each for pattern in listed.split() for each in _matching(pattern, left)]
        for name in names:
            left.pop(name, None)
        yield topic, names
    if left:
        raise LookupError(f"docs/surface.py gives no topic to {', '.join(left)}")


def _matching(pattern: str, left: dict[str, Any]) -> list[str]:
    if pattern.endswith(".*"):
        return sorted(name for name in left if name.startswith(pattern.removesuffix("*")))
    if pattern != "Client.sharded" and pattern not in left:
        raise LookupError(f"docs/surface.py lists {pattern}, which is not public, or lists it twice")
    return [pattern]


def page() -> str:
    """Return the tables of the page."""
    return "\n\n".join("\n".join(_section(topic, names)) for topic, names in topics())


def _section(topic: str, names: list[str]) -> Iterator[str]:
    yield f"## {topic}\n"
    yield "| Name | Meaning |"
    yield "| --- | --- |"
    for name in names:
        for call, meaning, link in _rows(name):
            shown = f"`{call}`".replace("|", "\\|")
            yield f"| {f'[{shown}]({link})' if link else shown} | {meaning} |"


def _rows(name: str) -> Iterator[tuple[str, str, str]]:
    entry = members().get(name) or (inspect.getattr_static(Client, "sharded"))
    if isinstance(entry, cached_property):
        part = type(getattr(Client("postgres://localhost:1/nowhere"), name.removeprefix("client.")))
        for each, method in _public(part):
            yield f"{name}.{each}{_parameters(method)}", _meaning(_doc(method)), _anchor(name)
    elif isinstance(entry, tuple):
        module, short = entry
        value, doc = getattr(importlib.import_module(module), short), docstring(module, short)
        call = short if module == "gw_core" else f"{module.removeprefix('gw_core.')}.{short}"
        call += _parameters(value) if inspect.isfunction(value) else ""
        yield call, _meaning(doc), example(doc) or ""
    else:
        yield f"{name}{_parameters(entry)}", _meaning(_doc(entry)), "../api/index.md#client"


def _anchor(part: str) -> str:
    return "../api/index.md#client-jobs" if part == "client.jobs" else f"../api/parts.md#{part.replace('.', '-')}"


def _doc(member: Any) -> str:
    function = getattr(member, "function", None) or getattr(member, "__func__", member)
    return inspect.getdoc(function) or ""


def _parameters(member: Any) -> str:
    function = getattr(member, "function", None) or getattr(member, "__func__", member)
    if not inspect.isroutine(function):
        return ""
    given = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")]
    plain = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else ...) for each in given
    ]
    return str(inspect.Signature(plain)).replace("=Ellipsis", "=…")


def docstring(module: str, name: str) -> str:
    """Return the docstring of a public name; that of a value stands below its assignment."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.getdoc(value) or ""
    for source in _sources(module):
        body = ast.parse(inspect.getsource(importlib.import_module(source))).body
        for statement, following in pairwise(body):
            if _assigns(statement, name) and isinstance(following, ast.Expr):
                return inspect.cleandoc(str(ast.literal_eval(following.value)))
    return ""


def _sources(module: str) -> list[str]:
    """Return the modules that a public module takes its names from."""
    return re.findall(r"^\s+(gw_core[\w.]+): ", inspect.getsource(importlib.import_module(module)), re.MULTILINE)


def _assigns(statement: ast.stmt, name: str) -> bool:
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return any(isinstance(each, ast.Name) and each.id == name for each in targets)


def example(doc: str) -> str | None:
    """Return the page with an example that a docstring names, relative to the folder of the page."""
    found = EXAMPLE.search(doc)
    return f"../{found[1]}.md" if found else None


def _meaning(doc: str) -> str:
    paragraph = " ".join(doc.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph)[0].rstrip(".").replace("|", "\\|")
