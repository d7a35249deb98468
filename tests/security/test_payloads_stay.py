"""No value of a payload leaves the worker: for Sentry, OpenTelemetry, the log, or what prints an event or an error."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.queue_fixture import QueueFixture

from gw_core.front_ends import JobResultRejected

pytest.importorskip("sentry_sdk")
pytest.importorskip("opentelemetry.sdk")

CHECKOUT = Path(__file__).resolve().parents[2]
TASKS = ("sync", "asynchronous", "isolated", "program", "batch", "logged", "typed", "choice", "model", "union", "slow")

CARD, TOKEN, NOTE, AMOUNT = "4242424242424242", "tok_live_x9", "for Grandma's flat", 918273645
SECRETS = (CARD, TOKEN, "Grandma", str(AMOUNT))
PAYLOAD = {"kind": TOKEN, "card": CARD, "nested": {"token": TOKEN, "note": NOTE}, "amount": AMOUNT, "list": [TOKEN]}

FUNCTIONS = '''
import dataclasses, enum, time
from typing import Literal
import msgspec, pydantic
from gw_core import task

class Declined(Exception):
    """Carries the payload, but does not print it."""
    def __init__(self, order):
        super().__init__("declined")
        self.order = order

def charge(order):
    card, (token, *_) = order["card"], order["list"]
    try:
        order["missing"]
    except KeyError as error:
        raise Declined(order) from error

@task
def sync(payload):
    amount = payload["amount"] * 1
    charge(payload)

@task
async def asynchronous(payload, context):
    charge(payload)

@task(isolation="process")
def isolated(payload):
    charge(payload)

@task
def batch(payload):
    def outcome(item):
        try:
            charge(item)
        except Exception as error:
            return error
    return [outcome(item) for item in payload]

@task
def logged(payload, context):
    try:
        charge(payload)
    except Declined:
        context.logger.exception("cannot charge")
        context.logger.debug("will give up")
    import sentry_sdk
    sentry_sdk.capture_message("about to fail")
    context.add("sync", payload, max_attempts=1)
    raise ValueError("given up")

@task(timeout=0.05)
def slow(payload, context):
    context.should_stop.wait(30)

class Kind(enum.Enum):
    gold = "gold"

class Order(msgspec.Struct):
    kind: Kind

@dataclasses.dataclass
class Choice:
    amount: Literal[1, 2]

class Model(pydantic.BaseModel):
    card: int
    amount: str
    nested: list[int]

class Cat(pydantic.BaseModel):
    kind: Literal["cat"]

class Dog(pydantic.BaseModel):
    kind: Literal["dog"]

class Union(pydantic.BaseModel):
    pet: Cat | Dog = pydantic.Field(discriminator="kind")

@task
def typed(payload: Order): ...

@task
def choice(payload: Choice): ...

@task
def model(payload: Model): ...

@task
def union(payload: Union): ...
'''

PROGRAM = """#!/bin/sh
echo "cannot charge" >&2
exit 3
"""

PLUGINS = """
import json, logging, sys, traceback
import sentry_sdk
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from rich.pretty import pretty_repr
from gw_core import Plugin
from gw_core.contrib.opentelemetry import OpenTelemetry
from gw_core.contrib.sentry import Sentry
from gw_core.events import JobErrored

def keep(name, text):
    with open(name, "ab", buffering=0) as file:
        file.write(text.encode() + b"\\n")

class Transport(sentry_sdk.Transport):
    def capture_envelope(self, envelope):
        for item in envelope.items:
            keep("sentry", f"{item.type} {item.get_bytes().decode()}")

class Exporter(SpanExporter):
    def export(self, spans):
        for span in spans:
            keep("opentelemetry", span.to_json(indent=None))
        return SpanExportResult.SUCCESS

class Printer(Plugin):
    def attach(self, events):
        events.on("*", self.print_event)

    def around_run(self, job, context, run):
        keep("printed", f"{job} {context!r} {vars(context) if hasattr(context, '__dict__') else ''}")
        return run()

    def print_event(self, event):
        keep("printed", f"{event!r} {event} {pretty_repr(event)}")
        if isinstance(event, JobErrored):
            keep("printed", repr(event.error))
            keep("printed", "".join(traceback.format_exception(event.error)))

sentry_sdk.init(
    dsn="https://key@localhost/1", transport=Transport(), traces_sample_rate=1.0, attach_stacktrace=True,
    enable_logs=True, send_default_pii=True,
)
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Exporter()))
sentry, otel, printer = Sentry(), OpenTelemetry(tracer_provider=provider), Printer()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "shop.py").write_text(FUNCTIONS)
    program = tmp_path / "tasks" / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "probes.py").write_text(PLUGINS)
    return tmp_path


def add_all(site: QueueFixture) -> None:
    for name in TASKS:
        payload: Any = [PAYLOAD, PAYLOAD] if name == "batch" else {"pet": PAYLOAD} if name == "union" else PAYLOAD
        site.add(name, payload, max_attempts=1)


def run(site: QueueFixture, project: Path, log_format: str) -> str:
    """Run all jobs to their failure; return the log."""
    plugins = [option for name in ("sentry", "otel", "printer") for option in ("--plugin", f"probes:{name}")]
    command = [sys.executable, "-m", "gw_cli", "run", "--once", "-c", site.url, "--log-level", "debug"]
    ended = subprocess.run(
        [*command, "--log-format", log_format, *plugins],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        timeout=200,
        text=True,
        check=True,
    )
    return ended.stderr + ended.stdout


def found_in(text: str) -> list[str]:
    """Return the lines with a value of the payload."""
    return [line[:2000] for line in text.splitlines() if any(secret in line for secret in SECRETS)]


@pytest.mark.acceptance
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_value_of_a_payload_is_sent_or_printed(site: QueueFixture, project: Path, log_format: str) -> None:
    add_all(site)
    log = run(site, project, log_format)

    places = {name: (project / name).read_text() for name in ("sentry", "opentelemetry", "printed")}
    places |= {"log": log, "last_error": "\n".join(str(row["last_error"]) for row in site.jobs())}
    assert {name: lines for name, text in places.items() if (lines := found_in(text))} == {}
    for name in ("sentry", "opentelemetry", "printed", "log"):  # each has seen every failure
        assert [task for task in TASKS if task not in places[name]] == [], name


def test_an_outcome_that_the_database_rejects_shows_no_payload(site: QueueFixture) -> None:
    """PostgreSQL quotes the whole row in the details of its error, which the log shows as a cause."""

    def decline(payload: Any) -> None:
        raise ValueError("declined")

    site.run("alter table _private_jobs add constraint declining check (strpos(last_error, 'declined') = 0)")
    try:
        site.add("work", PAYLOAD, max_attempts=1)
        with site.running({"work": decline}) as running:
            running.recorded.wait_for(JobResultRejected)
            site.run("alter table _private_jobs drop constraint declining")
    finally:
        site.run("alter table _private_jobs drop constraint if exists declining")

    formatted = [logging.Formatter().format(record) for record in running.log.records]
    assert any("rejected the outcome" in text and "declining" in text for text in formatted)
    assert found_in("\n".join(formatted)) == []
