"""One trace goes from a Django view's span to the run of its task in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from settings import GRAPHILE, TASKS
from shop import tasks
from worker import URL

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gw_core.contrib.opentelemetry import OpenTelemetry

WORKER = """
import sys
import django
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
django.setup()
from gw_core import run_once
from gw_core.contrib.django.worker import registry
from gw_core.contrib.opentelemetry import OpenTelemetry

provider = TracerProvider()
exporter = ConsoleSpanExporter(formatter=lambda span: span.to_json(None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
plugin = OpenTelemetry(relation="parent", tracer_provider=provider)
run_once(sys.argv[1], tasks=registry(), plugins=[plugin], migrate=False)
"""

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
plugin = OpenTelemetry(tracer_provider=provider)
TRACED: dict[str, Any] = {**TASKS["default"], "BACKEND": GRAPHILE, "OPTIONS": {"PLUGINS": ["check_tracing:plugin"]}}


def test_one_trace_goes_from_a_view_to_the_run_of_its_task() -> None:
    with override_settings(TASKS={"default": TRACED}), provider.get_tracer("view").start_as_current_span("GET /buy"):
        tasks.create_order.using(backend="default").enqueue("book")

    done = subprocess.run(
        [sys.executable, "-c", WORKER, URL],
        cwd=Path(__file__).parent,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings"},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    send, view = exporter.get_finished_spans()
    run, settle = map(json.loads, done.stdout.splitlines())
    assert (view.name, send.name.split()[0], run["name"].split()[0]) == ("GET /buy", "send", "process")
    assert {ids_of(view)[0], ids_of(send)[0], int(run["context"]["trace_id"], 16)} == {ids_of(view)[0]}
    assert int(run["parent_id"], 16) == ids_of(send)[1]
    assert (settle["name"].split()[0], settle["parent_id"]) == ("settle", run["context"]["span_id"])


def ids_of(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id
