"""The conditions on history, in the same language as those on jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from gw_core.domain.job.history import HistoryState
from gw_core.selection.kinds import Bind, Containing, Element, Kind, Names, Number, Path, Payload, Resolved, Time, state
from gw_core.selection.terms import Cost, Term
from gw_core.selection.values import Text, Value


class EndState(Kind, frozen=True):
    """How an attempt ended."""

    def read(self, element: Element, path: Path = ()) -> Value:
        return state(element, HistoryState, "a state of history")

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Compare names; each that is not `completed` also as the condition of the index that has those rows."""
        names = {value.text for value in values if isinstance(value, Text)}
        compared = Names().sql(column, values, path, database, bind)
        is_rare = HistoryState.COMPLETED not in names
        return f"{compared} and {column} <> '{HistoryState.COMPLETED}'" if is_rare else compared


class IndexedName(Names, frozen=True):
    """A name, by an index that also has the order of the list."""

    def sql(self, column: str, values: Sequence[Value], path: Path, database: Resolved, bind: Bind) -> str:
        """Compare one name with `=`: before PostgreSQL 17, rows found with `any` are not in the order of the index."""
        if len(values) == 1 and isinstance(values[0], Text):
            return f"{column} = {bind(values[0].text)}::text"
        return super().sql(column, values, path, database, bind)


def _term(name: str, kind: Kind, column: str, cost: Cost, help_: str, example: str, attribute: str = "") -> Term:
    return Term(name, kind, f"history.{column}", attrgetter(attribute or column), cost, help_, example)


HISTORY_TERMS: Final[Mapping[str, Term]] = {
    term.name: term
    for term in (
        _term("state", EndState(), "state", Cost.INDEX, "how the attempt ended", "state:failed"),
        _term("id", Number(1, 2**63 - 1, "the id of a job; ids are whole numbers from 1"), "job_id", Cost.INDEX,
              "job id", "id:9001,9002"),
        _term("task", IndexedName(), "task", Cost.INDEX, "task", "task:send_email"),
        _term("job_key", Names(), "key", Cost.WINDOW, "job key", "job_key:welcome-42", "job_key"),
        _term("queue", Names(), "queue_name", Cost.WINDOW, "named queue", "queue:reports"),
        _term("worker", Names(), "worker_id", Cost.WINDOW, "worker that ran it", "worker:gw-web*"),
        _term("attempts", Number(0, 999_999_999), "attempt", Cost.WINDOW, "number of the attempt", "attempts:>3",
              "attempt"),
        _term("finished_at", Time(), "finished_at", Cost.INDEX, "when the attempt ended", "finished_at:-1h..now"),
        _term("started_at", Time(), "started_at", Cost.WINDOW, "when the attempt started", "started_at:<-10m"),
        _term("created_at", Time(), "created_at", Cost.WINDOW, "when the job was added", "created_at:-1d..now"),
        _term("error", Containing(), "error", Cost.SCAN, "text in its error", 'error:"timed out"'),
        _term("payload", Payload(), "payload", Cost.SCAN, "value in a payload that is kept", "payload.user.id:42",
              "payload_json"),
        _term("result", Payload(), "result", Cost.SCAN, "value in its result", "result.status:sent", "result_json"),
    )
}  # fmt: skip
"""The conditions on history, in the order in which help shows them."""
