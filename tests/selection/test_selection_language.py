"""The selection language: strict, exact about what is wrong where, and written back as it reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.profiles import examples

from gw_core import Job, JobState, Selection
from gw_core.errors import InvalidInputError, SelectionError
from gw_core.front_ends import EVERYTHING, TERMS, Cost, FoundJob, Resolved, suggest
from gw_core.selection import parse

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
EPOCH = NOW.timestamp()


def a_job(state: JobState = JobState.READY, *, payload: str = "{}", **changes: Any) -> FoundJob:
    values: dict[str, Any] = {
        "id": 7,
        "task": "send",
        "attempts": 0,
        "max_attempts": 25,
        "priority": 0,
        "_run_at": EPOCH,
        "_created_at": EPOCH - 60,
        "_updated_at": EPOCH - 60,
        "revision": 0,
    }
    return FoundJob(Job(payload_json=payload, **{**values, **changes}), state)


# -- what it means -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "job", "matches"),
    [
        ("", a_job(), True),
        ("state:failed", a_job(JobState.FAILED), True),
        ("-state:failed", a_job(JobState.FAILED), False),
        ("-state:failed", a_job(JobState.READY), True),
        ("state:failed,backoff", a_job(JobState.BACKOFF), True),
        ("state:failed,backoff", a_job(JobState.RUNNING), False),
        ("7", a_job(), True),
        ("8 9", a_job(), False),
        ("8 9,7", a_job(), True),
        ("id:5..9", a_job(), True),
        ("-id:7,8", a_job(), False),
        ("task:send task:other", a_job(), False),
        ("task:other,se*", a_job(), True),
        ("TASK:send", a_job(), True),
        ("task:Send", a_job(), False),
        ('task:"se*"', a_job(), False),
        ('task:"se*"', a_job(task="se*"), True),
        ("-job_key:k", a_job(job_key="k"), False),
        ("job_key:*", a_job(), False),
        ("-queue:q", a_job(), True),
        ("-queue:*", a_job(), True),
        ("-queue:*", a_job(queue_name="q"), False),
        ("-flag:x", a_job(_flags='{"x": true}'), False),
        ("flag:a,x*", a_job(_flags='{"xy": true}'), True),
        ("worker:w:1", a_job(locked_by="w:1"), True),
        ("-error:REFUSED", a_job(last_error="connection refused"), False),
        ("error:*", a_job(), False),
        ("error:*", a_job(last_error=""), True),
        ('error:"time out",refused', a_job(last_error="REFUSED!"), True),
        ("attempts:>3", a_job(attempts=3), False),
        ("attempts:>3", a_job(attempts=4), True),
        ("attempts:3", a_job(attempts=3), True),
        ("attempts:>=3", a_job(attempts=3), True),
        ("attempts:<3", a_job(attempts=3), False),
        ("attempts:1..3", a_job(attempts=3), True),
        ("attempts:1..2", a_job(attempts=3), False),
        ("attempts:0,3", a_job(attempts=3), True),
        ("attempts:1,>5", a_job(attempts=6), True),
        ("priority:<0", a_job(priority=-1), True),
        ("prio:-5..-3", a_job(priority=-4), True),
        ("priority:..-3", a_job(priority=-4), True),
        ("-priority:0", a_job(), False),
        ("run_at:<+1h", a_job(_run_at=EPOCH + 3599), True),
        ("run_at:<+1h", a_job(_run_at=EPOCH + 3600), False),
        ("run_at:<-5m", a_job(_run_at=EPOCH - 301), True),
        ("run_at:<-5m", a_job(_run_at=EPOCH - 299), False),
        ("run_at:now..+1h30m", a_job(_run_at=EPOCH + 5400), True),
        ("run_at:>2026-03-01T11:59Z", a_job(), True),
        ("run_at:2026-03-01T13:00+01:00", a_job(), True),
        ("run_at:>+1d", a_job(_run_at=float("inf")), True),
        ("run_at:>+999999w", a_job(_run_at=float("inf")), True),
        ("started_at:<-10m", a_job(JobState.RUNNING, _locked_at=EPOCH, _started_at=EPOCH - 601), True),
        ("locked_at:<-10m", a_job(JobState.RUNNING, _locked_at=EPOCH, _started_at=EPOCH - 601), False),
        ("started_at:<-10m", a_job(), False),
        ("created_at:<-30s", a_job(), True),
        ("payload.user.id:42", a_job(payload='{"user": {"id": 42}}'), True),
        ("payload.user.id:42", a_job(payload='{"user": {"id": "42"}}'), True),
        ("payload.user.id:42", a_job(payload='{"user": {"id": 420}}'), False),
        ("payload.user.id:42*", a_job(payload='{"user": {"id": 420}}'), True),
        ("payload.user.id:41,42", a_job(payload='{"user": {"id": 42}}'), True),
        ("payload.user.id:42", a_job(payload='{"user": 42}'), False),
        ("payload.n:1e400", a_job(payload='{"n": 1e400}'), True),
        ("payload.n:12345678901234567890123", a_job(payload='{"n": 12345678901234567890123}'), True),
        ("payload.ok:true", a_job(payload='{"ok": true}'), True),
        ("payload.ok:null", a_job(payload='{"ok": null}'), True),
        ("payload.ok:*", a_job(payload="{}"), False),
        ("payload.list.1:b", a_job(payload='{"list": ["a", "b"]}'), True),
        ("payload.list.-1:b", a_job(payload='{"list": ["a", "b"]}'), True),
        ("payload.list.9:b", a_job(payload='{"list": ["a", "b"]}'), False),
        ("payload.list:b", a_job(payload='{"list": ["a", "b"]}'), False),
        ('payload."a.b":x', a_job(payload='{"a.b": "x"}'), True),
        ("payload:USER", a_job(payload='{"user": 1}'), True),
        ("-payload:user", a_job(payload='{"user": 1}'), False),
        ("payload.a:x", a_job(payload="not json"), False),
        ("payload.a:x", a_job(payload="[" * 100_000), False),
    ],
)
def test_a_job_meets_a_selection_or_does_not(text: str, job: FoundJob, matches: bool) -> None:
    assert parse(text).matches(job, NOW) is matches
    assert parse(text).at(NOW).matches(job, NOW + timedelta(days=9)) is matches


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("", set(JobState)),
        ("state:ready,failed -state:failed", {JobState.READY}),
        ("worker:w", {JobState.RUNNING}),
        ("-worker:w", set(JobState)),
        ("state:failed started_at:<now", set()),
    ],
)
def test_a_selection_knows_the_states_of_its_jobs(text: str, states: set[JobState]) -> None:
    assert parse(text).states == states


def test_ids_in_a_selection_are_names_and_ranges_are_not() -> None:
    assert parse("9 3 id:9,3").ids == (3, 9)
    assert parse("id:3..9").ids is None
    assert parse("-id:3").ids is None
    assert parse("job_key:a,b").is_by_name
    assert not parse("job_key:a*").is_by_name


def test_names_become_ids() -> None:
    known = Resolved(now=NOW, tasks={"send": 1, "sendfax": 2, "mail": 3}, queues={"q": 5})

    fragment = parse("task:send*,mail -queue:q").sql(known)

    assert fragment.text == (
        "(jobs.task_id = any(%(selection_0)s::int[])) and (jobs.job_queue_id = %(selection_1)s::int) is not true"
    )
    assert fragment.values == {"selection_0": [1, 2, 3], "selection_1": 5}
    assert parse("task:pay").cannot_match(known)
    assert not parse("-task:pay").cannot_match(known)
    assert parse("queue:q").only_queue(known) == 5


@given(st.text(min_size=1, max_size=20))
def test_no_value_becomes_sql_text(value: str) -> None:
    try:
        wanted = Selection.of(job_key=value, error=value, payload=value, worker=value, flag=value)
    except InvalidInputError:
        return
    fixed = Selection.of(job_key="v", error="v", payload="v", worker="v", flag="v")

    assert wanted.sql(Resolved(now=NOW)).text == fixed.sql(Resolved(now=NOW)).text


# -- from Python -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Selection.of(), ""),
        (Selection.of(state="failed", task="mail"), "state:failed task:mail"),
        (Selection.of(state=[JobState.FAILED, "ready"]), "state:failed,ready"),
        (Selection.of(id=[9, 3, 9]), "id:9,3"),
        (Selection.of(id="5..9", attempts=">3", priority=0), "id:5..9 priority:0 attempts:>3"),
        (Selection.of(run_at="<-1h", task=["a", "b*"]), 'task:a,"b*" run_at:<-1h'),
        (Selection.of(task="a") & parse("-queue:b"), "task:a -queue:b"),
        (Selection.of(id=[]), "-id:>=1"),
    ],
)
def test_a_selection_from_python_is_the_one_from_text(wanted: Selection, text: str) -> None:
    assert str(wanted) == text
    assert parse(text) == wanted


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"state": "gone"}, "ready, scheduled, waiting, running"),
        ({"task": ""}, "task: the value is empty"),
        ({"error": "x" * 1001}, "longer than 1000"),
        ({"worker": "a\x00"}, "cannot store"),
        ({"id": [0]}, "not the id of a job"),
        ({"id": True}, "True is not a value of id"),
        ({"id": range(1, 100_002)}, "at most 100000"),
        ({"run_at": "soon"}, "run_at: 'soon' is not"),
    ],
)
def test_a_condition_no_job_can_meet_is_rejected(conditions: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Selection.of(**conditions)


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", Cost.INDEX),
        ("state:failed", Cost.INDEX),
        ("-state:failed", Cost.WINDOW),
        ("state:failed task:a", Cost.WINDOW),
        ("error:x task:a", Cost.SCAN),
        ("id:4 error:x", Cost.INDEX),
        ("job_key:k payload.a:1", Cost.INDEX),
    ],
)
def test_a_selection_says_what_it_costs(text: str, cost: Cost) -> None:
    assert parse(text).cost is cost


# -- what is wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("refused", 0, "'refused' has no term"),
        ("task:a refused", 7, "'refused' has no term"),
        ("-", 1, "this has no term"),
        ("-7", 1, "'7' has no term"),
        ('"x"', 0, "this has no term"),
        ("tsak:a", 0, "unknown term 'tsak'"),
        ("task", 4, "task needs a colon"),
        ("task.a:b", 4, "task needs a colon"),
        ("task:", 5, "a value is missing, as in task:send*,mail"),
        ('task:""', 7, "a value is missing"),
        ("task:a, ", 7, "a value is missing"),
        ("task:a task: b", 12, "a value is missing"),
        ("state:,", 6, "a value is missing"),
        ("state:fail*", 6, "'fail*' is not a state"),
        ('error:"open', 6, "this quote is not closed"),
        ('task:a"b"', 6, "put the whole value in quotes"),
        ('task:"a"b', 8, "put the whole value in quotes"),
        ("task:a*b", 6, "a * stands only at the end"),
        ("task:>a", 5, "takes no range"),
        ("payload.n:>5", 10, "takes no range"),
        ("payload:>5", 8, "takes no range"),
        ("error:x*", 6, "matches anywhere"),
        ("payload:x*", 8, "matches anywhere"),
        ("state:dead", 6, "'dead' is not a state of a job"),
        ("state:failed,dead", 13, "'dead' is not a state of a job"),
        ("id:x", 3, "'x' is not the id of a job"),
        ("id:1,0", 5, "'0' is not the id of a job"),
        ("5,0", 2, "'0' is not the id of a job"),
        ("id:99999999999999999999", 3, "is not the id of a job"),
        ("job_key:" + "k" * 1001, 8, "longer than 1000"),
        ("queue:a\x00", 6, "a character that PostgreSQL cannot store"),
        ("worker:\ud800", 7, "a character that PostgreSQL cannot store"),
        ("flag:", 5, "a value is missing"),
        ("priority:low", 9, "'low' is not a whole number"),
        ("attempts:many", 9, "'many' is not a whole number"),
        ("attempts:>>3", 9, "'>3' is not a whole number"),
        ("attempts:..", 9, "'..' is not a range"),
        ("attempts:1..2..3", 9, "'2..3' is not a whole number"),
        ("run_at:5", 7, "'5' is not a valid time"),
        ("run_at:-1h", 7, "'-1h' is a single instant; write <-1h, >-1h or -1h..now"),
        ("run_at:<2026-01-31T08:00", 7, "has no time zone"),
        ("started_at:>soon", 11, "'soon' is not a valid time"),
        ("locked_at:>+soon", 10, "'soon' is not a duration"),
        ("created_at:<-5", 11, "'5' is not a duration"),
        ("payload.:1", 8, "a name is missing after the dot"),
        ("payload" + ".a" * 51 + ":1", 109, "more than 50 levels"),
        ("task:a " * 31, 210, "more than 30 conditions"),
    ],
)
def test_what_is_wrong_is_said_with_its_position(text: str, position: int, reason: str) -> None:
    with pytest.raises(SelectionError) as caught:
        parse(text)

    assert caught.value.position == position
    assert reason in caught.value.reason
    assert str(caught.value).endswith(f"(at character {position + 1})")


# -- laws --------------------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
_RANGES = st.sampled_from(["0", "3", ">3", ">=1", "<5", "<=5", "1..4", "..2", "7..", "1,>4", "5..5"])
_TIMES = st.sampled_from(
    ["<now", ">-1h30m", "<-5m", "<=+2d", "-1h..+1h", "..+90s", "<-0.5ms", ">+1.234ms", "2026-01-31T08:00:00.123456Z",
     "2026-01-31T08:00+02:00..", "<0001-01-01T00:00Z,>now"]
)  # fmt: skip


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _conditions() -> st.SearchStrategy[str]:
    names = st.sampled_from(["task", "queue", "job_key", "worker", "flag", "payload.a", 'payload."b c".0'])
    return st.one_of(
        st.tuples(names, st.lists(_TEXTS.map(_quoted), min_size=1, max_size=3).map(",".join)).map(":".join),
        st.tuples(names, _TEXTS.map(lambda text: f"{_quoted(text)}*")).map(":".join),
        st.tuples(st.sampled_from(["error", "payload"]), _TEXTS.map(_quoted)).map(":".join),
        st.tuples(st.sampled_from(["prio", "attempts"]), _RANGES).map(":".join),
        st.tuples(st.sampled_from(["run_at", "started_at", "created_at", "locked_at"]), _TIMES).map(":".join),
        st.sampled_from(["state:failed", "state:ready,running", "id:1", "id:5,6", "id:>9", "queue:*", "error:*"]),
    ).flatmap(lambda term: st.sampled_from([term, f"-{term}"]))


def understood(text: str) -> Selection | SelectionError:
    try:
        return parse(text)
    except SelectionError as error:
        return error


@given(st.lists(_conditions(), max_size=6).map(" ".join))
def test_a_selection_is_written_so_that_it_reads_back_the_same(text: str) -> None:
    wanted = parse(text)

    assert parse(str(wanted)) == wanted
    assert str(parse(str(wanted))) == str(wanted)


@examples(300)
@given(
    st.one_of(st.text(), st.text(alphabet=' -:."\\,*<>=abtkszik019'), st.lists(_conditions(), max_size=4).map("x".join))
)
def test_any_text_is_understood_or_rejected_with_a_position_in_it(text: str) -> None:
    wanted = understood(text)

    if isinstance(wanted, SelectionError):
        assert 0 <= wanted.position <= len(text)
    else:
        assert parse(str(wanted)) == wanted
        assert wanted.matches(a_job(), NOW) in (True, False)


@given(st.text(alphabet=' -:."\\,taskqueworsi'), st.integers(0, 20))
def test_a_suggestion_changes_only_the_term_at_the_cursor(text: str, cursor: int) -> None:
    cursor = min(cursor, len(text))

    for suggestion in suggest(text, cursor, {"tasks": ["a b", "task"], "queues": ['q"'], "workers": []}):
        assert suggestion.text.endswith(text[cursor:])
        assert text.startswith(suggestion.text[: suggestion.cursor - len(suggestion.shown)])


# -- suggestions -------------------------------------------------------------------------------------------------------

NAMES = {"tasks": ["send_email", "resend", "a b"], "queues": ["mail"], "workers": ["gw-1"]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("st", ["state:", "started_at:"]),
        ("-at", ["-attempts:"]),
        ("pay", ["payload."]),
        ("state:fa", ["state:failed"]),
        ("state:failed,ba", ["state:failed,backoff"]),
        ("task:send", ["task:send_email", "task:resend"]),
        ("task:a", ['task:"a b"']),
        ('task:"a b",se', ['task:"a b",send_email', 'task:"a b",resend']),
        ("state:failed queue:", ["queue:mail"]),
        ("worker:gw-1", []),
        ("job_key:", []),
    ],
)
def test_suggestions_complete_terms_states_and_names(text: str, shown: list[str]) -> None:
    assert [each.shown for each in suggest(text, len(text), NAMES)] == shown


def test_every_example_in_the_table_is_understood() -> None:
    for term in TERMS.values():
        assert parse(term.example).conditions[0].term is term
    assert parse("") == EVERYTHING
