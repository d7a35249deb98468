"""The dashboard and the alert rules: current, valid, and about metrics that exist."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, QueueFixture, RunRecord
from support.waiting import wait_until

from gw_core import ProbeSettings
from gw_core.front_ends import METRICS, JobsSettled, MetricInfo

promql_parser = pytest.importorskip("promql_parser")
prometheus_parser = pytest.importorskip("prometheus_client.parser")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "grafana"


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("grafana_generate", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses find their module there
    spec.loader.exec_module(module)
    return module


def panel_expressions() -> list[str]:
    document = json.loads((FOLDER / "gw.json").read_text("utf-8"))
    return [target["expr"] for panel in document["panels"] for target in panel["targets"]]


def alert_expressions() -> list[str]:
    text = (FOLDER / "alerts.yaml").read_text("utf-8")
    return [json.loads(expression) for expression in re.findall(r"^ +expr: (.*)$", text, re.MULTILINE)]


EXPRESSIONS = panel_expressions() + alert_expressions()


def selected(expression: Any) -> Iterator[str]:
    """Yield the names of the time series that a parsed expression selects."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression.name
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        if (inner := getattr(expression, name, None)) is not None:
            yield from selected(inner)
    for argument in getattr(expression, "args", None) or ():
        yield from selected(argument)


def parsed(expression: str) -> Any:
    return promql_parser.parse(expression.replace("$__rate_interval", "5m"))


def series_of(metric: MetricInfo) -> set[str]:
    """Return the names of a metric's time series."""
    endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
    return {metric.name + ending for ending in endings[metric.kind]}


KNOWN = set().union(*map(series_of, METRICS.values()))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_valid_and_selects_known_series(expression: str) -> None:
    names = list(selected(parsed(expression)))

    assert names != []
    assert set(names) <= KNOWN


def test_the_walk_finds_series_in_every_part_of_an_expression() -> None:
    text = "histogram_quantile(0.5, sum by (le) (rate(a[5m]))) / (b + absent(c)) > max_over_time(d[1h:5m]) and -e"
    assert set(selected(parsed(text))) == {"a", "b", "c", "d", "e"}


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for expression in panel_expressions() for name in selected(parsed(expression))}

    assert [metric.name for metric in METRICS.values() if not series_of(metric) & shown] == []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values_of_the_queue_are_never_added_up(expression: str) -> None:
    assert re.search(r"sum[^(]*\(\w*\(?gw_queue_", expression) is None


def test_the_files_are_current(generator: Any) -> None:
    assert (FOLDER / "gw.json").read_text("utf-8") == generator.dashboard(), "run: python examples/grafana/generate.py"
    assert (FOLDER / "alerts.yaml").read_text("utf-8") == generator.rules(), "run: python examples/grafana/generate.py"


def test_a_worker_exports_exactly_the_metrics_of_the_table(site: QueueFixture) -> None:
    def exported() -> dict[str, tuple[str, str]]:
        assert running.runner.probe_address is not None
        connection = HTTPConnection(*running.runner.probe_address, timeout=DEADLINE)
        connection.request("GET", "/metrics")
        families = prometheus_parser.text_string_to_metric_families(connection.getresponse().read().decode())
        connection.close()
        return {each.name: (each.type, each.documentation) for each in families if each.name.startswith("gw_")}

    # A worker writes its statistics when a minute is over.
    site.run(
        "insert into _private_gw_statistics values"
        " (date_trunc('minute', now()) - interval '1 minute', 'work', 'gw-1', 1, 0, 0, 0.1, '{}', 0, 0)"
    )
    expected = {metric.name: (metric.kind, metric.help) for metric in METRICS.values()}
    probe = ProbeSettings(port=0, metrics=True, sample_interval=timedelta(seconds=1))
    with site.running({"work": RunRecord()}, probe=probe) as running:
        site.fill(1)
        running.recorded.wait_for(JobsSettled)
        # Those of the queue are left out while the database does not answer in time.
        wait_until(lambda: exported() == expected, every=0.2, what="exactly the metrics of the table")
