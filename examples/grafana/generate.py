"""Write the Grafana dashboard and the Prometheus alert rules from the metrics of gw: `python generate.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gw_core.front_ends import METRICS, MetricInfo

FOLDER = Path(__file__).parent
DASHBOARD = FOLDER / "gw.json"
RULES = FOLDER / "alerts.yaml"

WIDTH, HEIGHT, COLUMNS = 8, 7, 3
SELECTED = '{job=~"$job", instance=~"$instance"}'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


# -- dashboard -----------------------------------------------------------------------------------------------------


def dashboard() -> str:
    """Return the dashboard as JSON: a panel for each metric."""
    panels = [_panel(number, metric) for number, metric in enumerate(METRICS.values())]
    document = {
        "title": "gw: Graphile Worker for Python",
        "uid": "gw-workers",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "tags": ["gw", "postgresql"],
        "templating": {"list": [_datasource(), _variable("job", ""), _variable("instance", 'job=~"$job"')]},
        "panels": panels,
    }
    return json.dumps(document, indent=2) + "\n"


def _panel(number: int, metric: MetricInfo) -> Mapping[str, Any]:
    row, column = divmod(number, COLUMNS)
    targets = [
        {"datasource": DATASOURCE, "expr": expression, "legendFormat": legend, "refId": chr(ord("A") + index)}
        for index, (expression, legend) in enumerate(expressions(metric))
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": metric.help.rstrip("."),
        "description": f"{metric.name}, a {metric.kind}",
        "datasource": DATASOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": _unit(metric), "min": 0}, "overrides": []},
        "targets": targets,
    }


def expressions(metric: MetricInfo) -> Sequence[tuple[str, str]]:
    """Return the queries of a metric's panel, each with its legend."""
    by = ", ".join(metric.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or metric.name
    match metric.kind:
        case "counter":
            rate = f"rate({metric.name}_total{SELECTED}[$__rate_interval])"
            return [(f"sum by ({by}) ({rate})" if by else f"sum({rate})", legend)]
        case "histogram":
            rate = f"sum by (le, {by}) (rate({metric.name}_bucket{SELECTED}[$__rate_interval]))"
            return [
                (f"histogram_quantile({quantile}, {rate})", f"{legend} p{quantile * 100:g}") for quantile in (0.5, 0.95)
            ]
        case "gauge":
            # Every worker reports the same queue, so its values must not be added up.
            function = "max" if metric.name.startswith("gw_queue_") or "age" in metric.name else "sum"
            return [(f"{function} by ({by}) ({metric.name}{SELECTED})" if by else _over(function, metric), legend)]


def _over(function: str, metric: MetricInfo) -> str:
    return f"{function}({metric.name}{SELECTED})"


def _unit(metric: MetricInfo) -> str:
    if metric.kind == "counter":
        return "ops"
    return {"seconds": "s", "bytes": "bytes"}.get(metric.name.rpartition("_")[2], "short")


def _datasource() -> Mapping[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(name: str, condition: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": f"label_values(gw_info{{{condition}}}, {name})",
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


# -- alerts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alert:
    """An alert rule; `lasting` is how long the expression must hold."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str


ALERTS = (
    Alert("GwNoWorkerReady", "sum(gw_ready) == 0 or absent(gw_ready)", "2m", "critical", "No worker claims jobs."),
    Alert(
        "GwDatabaseUnreachable",
        "gw_connected == 0",
        "1m",
        "critical",
        "{{ $labels.instance }} cannot claim jobs or store results.",
    ),
    Alert(
        "GwJobsWait",
        "max(gw_queue_longest_wait_seconds) > 300",
        "5m",
        "warning",
        "A ready job has waited for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "GwJobsFailedPermanently",
        "sum by (task) (increase(gw_jobs_permanently_failed_total[15m])) > 0",
        "0m",
        "warning",
        "Jobs of the task {{ $labels.task }} failed permanently.",
    ),
    Alert(
        "GwMostAttemptsFail",
        "sum by (task) (rate(gw_jobs_failed_total[10m])) / (sum by (task) (rate(gw_jobs_failed_total[10m]))"
        " + sum by (task) (rate(gw_jobs_completed_total[10m]))) > 0.5",
        "10m",
        "warning",
        "{{ $value | humanizePercentage }} of the attempts of the task {{ $labels.task }} fail.",
    ),
    Alert(
        "GwLocksLost",
        "sum by (task) (increase(gw_job_locks_lost_total[15m])) > 0",
        "0m",
        "warning",
        "Workers lost the locks of running jobs of the task {{ $labels.task }}; the jobs may run twice.",
    ),
    Alert(
        "GwResultsPending",
        "min_over_time(gw_results_pending[5m]) > 0",
        "0m",
        "warning",
        "{{ $labels.instance }} cannot store the results of {{ $value }} runs.",
    ),
    Alert(
        "GwClaimsStall",
        "gw_last_claim_age_seconds > 120 and gw_jobs_running < gw_threads",
        "2m",
        "critical",
        "{{ $labels.instance }} has idle threads and has not claimed jobs for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "GwQueueSampleOld",
        "max(gw_queue_sample_age_seconds) > 600",
        "5m",
        "warning",
        "The gw_queue metrics are {{ $value | humanizeDuration }} old.",
    ),
)


def rules() -> str:
    """Return the alert rules as YAML. JSON texts are YAML texts, so values need no library."""
    lines = [line for alert in ALERTS for line in _rule(alert)]
    return "\n".join(("groups:", "  - name: gw", "    rules:", *lines, ""))


def _rule(alert: Alert) -> Iterator[str]:
    yield f"      - alert: {alert.name}"
    yield f"        expr: {json.dumps(alert.expression)}"
    yield f"        for: {alert.lasting}"
    yield f"        labels: {{severity: {alert.severity}}}"
    yield f"        annotations: {{summary: {json.dumps(alert.summary)}}}"


if __name__ == "__main__":
    DASHBOARD.write_text(dashboard(), "utf-8")
    RULES.write_text(rules(), "utf-8")
