"""The filter language: strict, exact about what is wrong where, and written back as it reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.profiles import examples

from gw_core import Job, JobFilter, JobState
from gw_core.operations import FoundJob, Narrowing
from gw_tui.rules.filter_language import KINDS, TICK, Cost, Filter, FilterError, parse, suggest

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
EPOCH = NOW.timestamp()


def a_job(state: JobState = JobState.READY, *, payload: str = "{}", **changes: Any) -> FoundJob:
    values: dict[str, Any] = {
        "id": 7,
        "task_identifier": "send",
        "attempts": 0,
        "max_attempts": 25,
        "priority": 0,
        "run_at_epoch": EPOCH,
        "created_at_epoch": EPOCH - 60,
        "updated_at_epoch": EPOCH - 60,
        "revision": 0,
    }
    return FoundJob(Job(payload=payload, **{**values, **changes}), state)


# -- what the core is asked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("", JobFilter(), id="nothing asks for everything"),
        pytest.param("  state:failed  ", JobFilter(state=JobState.FAILED), id="space around a term"),
        pytest.param("task:a queue:b", JobFilter(task="a", queue="b"), id="two terms"),
        pytest.param('error:"timed out"', JobFilter(error="timed out"), id="a text with a space"),
        pytest.param(r'key:"say \"hi\" \\"', JobFilter(key='say "hi" \\'), id="quotes within quotes"),
        pytest.param("id:9,3,9", JobFilter(ids=[3, 9]), id="several ids"),
        pytest.param("TASK:Send", JobFilter(task="Send"), id="kinds in any case, values as they are"),
        pytest.param("worker:w:1 flag:x", JobFilter(worker="w:1", flag="x"), id="a colon within a value"),
        pytest.param("-state:failed", JobFilter(), id="a negated term is judged here"),
        pytest.param("state:failed,running", JobFilter(), id="so are several states"),
        pytest.param("task:a task:b", JobFilter(task="a"), id="and a second term of a kind"),
    ],
)
def test_the_core_is_asked_what_it_can_say(text: str, wanted: JobFilter) -> None:
    assert parse(text).job_filter == wanted


def test_every_term_is_judged_by_the_core_or_here() -> None:
    wanted = parse("state:failed -task:a task:b task:c prio:1 id:4 payload.x:1")

    assert [str(term) for term in wanted.rest] == ["-task:a", "task:c", "prio:1", "payload.x:1"]


# -- what is judged here -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "job", "matches"),
    [
        ("-state:failed", a_job(JobState.FAILED), False),
        ("-state:failed", a_job(JobState.READY), True),
        ("state:failed,backoff", a_job(JobState.BACKOFF), True),
        ("state:failed,backoff", a_job(JobState.RUNNING), False),
        ("task:send task:other", a_job(), False),
        ("-id:7", a_job(), False),
        ("-id:07,8", a_job(), False),
        ("-key:k", a_job(key="k"), False),
        ("-queue:q", a_job(), True),
        ("-flag:x", a_job(flags='{"x": true}'), False),
        ("-worker:w", a_job(locked_by="w"), False),
        ("-error:REFUSED", a_job(last_error="connection refused"), False),
        ("attempts:>3", a_job(attempts=3), False),
        ("attempts:>3", a_job(attempts=4), True),
        ("attempts:3", a_job(attempts=3), True),
        ("attempts:>=3", a_job(attempts=3), True),
        ("attempts:<3", a_job(attempts=3), False),
        ("attempts:1..3", a_job(attempts=3), True),
        ("attempts:1..2", a_job(attempts=3), False),
        ("prio:<0", a_job(priority=-1), True),
        ("prio:-5..-3", a_job(priority=-4), True),
        ("prio:..-3", a_job(priority=-4), True),
        ("-prio:0", a_job(), False),
        ("run:<1h", a_job(run_at_epoch=EPOCH + 3599), True),
        ("run:<1h", a_job(run_at_epoch=EPOCH + 3600), False),
        ("run:<-5m", a_job(run_at_epoch=EPOCH - 301), True),
        ("run:<-5m", a_job(run_at_epoch=EPOCH - 299), False),
        ("run:0..1h30m", a_job(run_at_epoch=EPOCH + 5400), True),
        ("run:>1d", a_job(run_at_epoch=float("inf")), True),
        ("lock:>10m", a_job(JobState.RUNNING, locked_at_epoch=EPOCH - 601), True),
        ("lock:>10m", a_job(JobState.RUNNING, locked_at_epoch=EPOCH - 599), False),
        ("lock:>10m", a_job(), False),
        ("payload.user.id:42", a_job(payload='{"user": {"id": 42}}'), True),
        ("payload.user.id:42", a_job(payload='{"user": {"id": "42"}}'), True),
        ("payload.user.id:42", a_job(payload='{"user": {"id": 420}}'), False),
        ("payload.user.id:42", a_job(payload='{"user": 42}'), False),
        ("payload.n:1e400", a_job(payload='{"n": 1e400}'), True),
        ("payload.n:12345678901234567890123", a_job(payload='{"n": 12345678901234567890123}'), True),
        ("payload.ok:true", a_job(payload='{"ok": true}'), True),
        ("payload.ok:null", a_job(payload='{"ok": null}'), True),
        ("payload.list.1:b", a_job(payload='{"list": ["a", "b"]}'), True),
        ("payload.list.9:b", a_job(payload='{"list": ["a", "b"]}'), False),
        ("payload.list:b", a_job(payload='{"list": ["a", "b"]}'), False),
        ('payload."a.b":x', a_job(payload='{"a.b": "x"}'), True),
        ("payload:USER", a_job(payload='{"user": 1}'), True),
        ("-payload:user", a_job(payload='{"user": 1}'), False),
        ("payload.a:x", a_job(payload="not json"), False),
        ("payload.a:x", a_job(payload="[" * 100_000), False),
    ],
)
def test_a_job_meets_a_filter_or_does_not(text: str, job: FoundJob, matches: bool) -> None:
    wanted = parse(text)

    assert (wanted.asked(NOW).matches(job.job, job.state) and wanted.matches(job, NOW)) is matches


@pytest.mark.parametrize(
    ("text", "narrowing"),
    [
        ("prio:<0", Narrowing(priority=(None, -1))),
        ("prio:-2..2 attempts:>=3", Narrowing(priority=(-2, 2), attempts=(3, None))),
        ("run:<1h", Narrowing(run_at=(None, NOW + timedelta(hours=1) - TICK))),
        ("run:-1h..0", Narrowing(run_at=(NOW - timedelta(hours=1), NOW))),
        ("run:>999999w", Narrowing(run_at=(None, None))),
        ("lock:>10m", Narrowing(started_at=(None, NOW - timedelta(minutes=10) - TICK))),
        ("lock:<10m", Narrowing(started_at=(NOW - timedelta(minutes=10) + TICK, None))),
        ("payload.a.0:x", Narrowing(payload_path=("a", "0"), payload_value="x")),
        ("payload:x", Narrowing(payload_text="x")),
        ("-prio:0 task:a", None),
        ("id:1 prio:0", None),
        ("payload.a:null", None),
    ],
)
def test_ranges_and_payloads_are_looked_for_in_the_database(text: str, narrowing: Narrowing | None) -> None:
    assert parse(text).asked(NOW).narrowing == narrowing


def test_payloads_are_fetched_only_for_what_the_database_cannot_judge() -> None:
    assert not parse("payload.a:1 payload:x error:x attempts:>3").needs_payload
    assert parse("payload.a:1 payload.b:2").needs_payload
    assert parse("-payload.a:1").needs_payload
    assert parse("id:4 payload.a:1").needs_payload


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
        ("key:k payload.a:1", Cost.INDEX),
    ],
)
def test_a_filter_says_what_it_costs(text: str, cost: Cost) -> None:
    assert parse(text).cost is cost


# -- what is wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("refused", 0, "say what 'refused' is"),
        ("task:a refused", 7, "say what 'refused' is"),
        ("-", 1, "say what this is"),
        ('"x"', 0, "say what this is"),
        ("tsak:a", 0, "there is no 'tsak' to filter by"),
        ("task", 4, "task is followed by a colon"),
        ("task.a:b", 4, "task is followed by a colon"),
        ("task:", 5, "a value is missing, as in task:send_email"),
        ('task:""', 7, "a value is missing"),
        ("task:a task: b", 12, "a value is missing"),
        ("state:,", 6, "a value is missing"),
        ('error:"open', 6, "this quote is not closed"),
        ('task:a"b"', 6, "a value is either in quotes as a whole or has none"),
        ('task:"a"b', 8, "a value is either in quotes as a whole or has none"),
        ("state:dead", 6, "'dead' is not a state of a job"),
        ("state:failed,dead", 6, "'dead' is not a state of a job"),
        ("id:x", 3, "'x' is not the id of a job"),
        ("id:0", 3, "0 is not the id of a job"),
        ("id:99999999999999999999", 3, "is not the id of a job"),
        ("attempts:many", 9, "'many' is not a whole number"),
        ("attempts:>>3", 9, "'>>3' is neither a value nor a range"),
        ("attempts:1..2..3", 9, "'2..3' is not a whole number"),
        ("run:5", 4, "'5' is not a duration"),
        ("lock:>soon", 5, "'soon' is not a duration"),
        ("payload.:1", 8, "a name is missing after the dot"),
        ("task:a\x00", 5, "a character PostgreSQL cannot store"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, place: int, reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)

    assert caught.value.position == place
    assert reason in caught.value.reason


def test_a_filter_has_bounds() -> None:
    with pytest.raises(FilterError, match="longer than 1000 characters"):
        parse("x" * 1001)
    with pytest.raises(FilterError, match="more than 30 terms"):
        parse("task:a " * 31)


# -- laws --------------------------------------------------------------------------------------------------------------

_VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
_RANGES = st.sampled_from(["0", "-3", ">3", ">=-1", "<5", "<=5", "=2", "1..4", "..2", "7.."])
_SPANS = st.sampled_from(["0", "1h", ">1h30m", "<-5m", "<=2d", "-1h..1h", "..90s"])


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _terms() -> st.SearchStrategy[str]:
    texts = st.sampled_from(
        ["task", "queue", "key", "worker", "flag", "error", "payload", "payload.a", 'payload."b c".0']
    )
    return st.one_of(
        st.tuples(texts, _VALUES.map(_quoted)).map(":".join),
        st.tuples(st.sampled_from(["prio", "attempts"]), _RANGES).map(":".join),
        st.tuples(st.sampled_from(["run", "lock"]), _SPANS).map(":".join),
        st.sampled_from(["state:failed", "state:ready,running", "id:1", "id:5,6"]),
    ).flatmap(lambda term: st.sampled_from([term, f"-{term}"]))


def understood(text: str) -> Filter | FilterError:
    try:
        return parse(text)
    except FilterError as error:
        return error


@given(st.lists(_terms(), max_size=6).map(" ".join))
def test_a_filter_is_written_so_that_it_reads_back_the_same(text: str) -> None:
    wanted = parse(text)

    assert parse(str(wanted)) == wanted
    assert str(parse(str(wanted))) == str(wanted)


@examples(300)
@given(st.one_of(st.text(), st.text(alphabet=' -:."\\,<>=abtkszik019'), st.lists(_terms(), max_size=4).map("x".join)))
def test_any_text_is_understood_or_refused_with_a_place_in_it(text: str) -> None:
    wanted = understood(text)

    if isinstance(wanted, FilterError):
        assert 0 <= wanted.position <= len(text)
    else:
        assert wanted.matches(a_job(), NOW) in (True, False)
        assert isinstance(wanted.asked(NOW), JobFilter)


@given(st.text(alphabet=' -:."\\,taskqueworsi'), st.integers(0, 20))
def test_a_suggestion_changes_only_the_term_at_the_cursor(text: str, cursor: int) -> None:
    cursor = min(cursor, len(text))

    for suggestion in suggest(text, cursor, {"tasks": ["a b", "task"], "queues": ['q"'], "workers": []}):
        assert suggestion.text.endswith(text[cursor:])
        assert suggestion.text[: suggestion.cursor].endswith(suggestion.shown)


# -- suggestions and additions -----------------------------------------------------------------------------------------

NAMES = {"tasks": ["send_email", "send_sms", "resize"], "queues": ["mail box"], "workers": ["w-1"]}


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("st", ["state:"]),
        ("state:failed qu", ["queue:"]),
        ("state:f", ["state:failed"]),
        ("state:failed,ba", ["state:failed,backoff"]),
        ("task:send", ["task:send_email", "task:send_sms"]),
        ("task:sms", ["task:send_sms"]),
        ("-task:r", ["-task:resize"]),
        ("queue:ma", ['queue:"mail box"']),
        ('queue:"mail b', ['queue:"mail box"']),
        ("worker:", ["worker:w-1"]),
        ("key:w", []),
        ("payl", ["payload."]),
        ("zzz", []),
    ],
)
def test_suggestions_complete_the_term_at_the_cursor(text: str, offered: list[str]) -> None:
    assert [each.shown for each in suggest(text, len(text), NAMES)] == offered


def test_every_kind_is_offered_where_a_term_begins() -> None:
    assert len(suggest("", 0, {})) == min(12, len(KINDS))


def test_a_term_takes_the_place_of_those_of_its_kind() -> None:
    assert str(parse("state:failed task:a").with_term("task:b")) == "state:failed task:b"
    assert str(parse("payload.a:1 payload.b:1").with_term("payload.b:2")) == "payload.a:1 payload.b:2"


def test_every_example_of_the_help_is_understood() -> None:
    for kind in KINDS.values():
        assert parse(kind.example).terms[0].kind is kind


def test_the_guide_lists_every_kind_of_term() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "console.md").read_text("utf-8")

    for kind in KINDS.values():
        assert f"| `{kind.example}` | {kind.meaning} | {kind.cost.name.lower()} |" in guide
