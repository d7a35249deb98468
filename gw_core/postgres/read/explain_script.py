"""Write a statement out as a script for psql, which shows the plan that gw's own session makes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.safe_text import sql_identifier
from gw_core.postgres.connection.statements import conditions_of, expanded_statement, query_names
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import SETTLE_PLAN

SESSIONS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("claim_jobs", "claim_unqueued_jobs", "claim_jobs_of_queues", "claim_by_field"), CLAIM_PLAN),
    **dict.fromkeys(
        ("is_any_available", "is_any_due", "is_anything_runnable", "is_any_of_queues_runnable"), CLAIM_PLAN
    ),
    **dict.fromkeys(("complete_jobs", "fail_jobs", "return_jobs", "row_locked_jobs"), SETTLE_PLAN),
}
"""The settings of the session that runs a statement; the others run with the settings of the server."""

_EXPLAINABLE: Final = re.compile(r"(with|select|insert|update|delete)\b")
_VARIABLE: Final = re.compile(r"[A-Z]+")
_ALL_JOBS: Final = {"SELECTION": "true"}


def list_statements() -> Mapping[str, str]:
    """Return the names of all statements, each with the first sentence of its comment."""
    return {name: _purpose(name) for name in query_names()}


def explain_script(name: str, schema: str, given: Mapping[str, str] | None = None, *, analyze: bool = False) -> str:
    """Return a statement with everything that it includes, prepared and explained in a transaction that is rolled back.

    `given` has texts of its values by their names, the others are null, and with capitals what stands for a variable.
    With `analyze` the statement also runs. Raises `InvalidInputError` for an unknown name.
    """
    if name not in query_names():
        raise InvalidInputError(f"there is no statement {name!r}; gw sql lists them")
    variables = {key: text for key, text in (given or {}).items() if _VARIABLE.fullmatch(key)}
    values = {key: text for key, text in (given or {}).items() if key not in variables}
    text, names = expanded_statement(name, schema, {**_ALL_JOBS, **conditions_of(name), **variables})
    if unknown := sorted(values.keys() - set(names)):
        has = f"its values are {', '.join(names)}" if names else "it has no values"
        raise InvalidInputError(f"statement {name} has no value {unknown[0]!r}; {has}")
    if _EXPLAINABLE.match(_code(text)) is None:
        return f"{text.rstrip()};\n"
    settings = [f"set local {key} to '{setting}';\n" for key, setting in SESSIONS.get(name, {}).items()]
    prepared, arguments = sql_identifier(name), _arguments(names, {"schema": schema, **values})
    return (
        "begin;\n"
        + "".join(settings)
        + f"prepare {prepared} as\n{text.rstrip()}\n;\n"
        + f"explain {'(analyze, buffers) ' * analyze}execute {prepared}{arguments};\n"
        + f"deallocate {prepared};\nrollback;\n"
    )


def _purpose(name: str) -> str:
    text, _ = expanded_statement(name, "graphile_worker", {**_ALL_JOBS, **conditions_of(name)})
    lines = [line.removeprefix("-- ") for line in text.splitlines() if line.startswith("--")]
    return " ".join(lines).partition(". ")[0].partition(" -- ")[0].rstrip(".") if lines else ""


def _code(text: str) -> str:
    """Return a statement without the comments at its beginning."""
    lines = text.splitlines()
    return next((line.strip() for line in lines if line.strip() and not line.startswith("--")), "")


def _arguments(names: Sequence[str], values: Mapping[str, str]) -> str:
    """Return the arguments of a prepared statement, each with its name."""
    if not names:
        return ""
    last = len(names) - 1
    lines = [
        f"  {_literal(values.get(name))}{',' if place < last else ''} -- {name}\n" for place, name in enumerate(names)
    ]
    return " (\n" + "".join(lines) + ")"


def _literal(text: str | None) -> str:
    if text is None:
        return "null"
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
