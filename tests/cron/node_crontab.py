"""Ask the real Graphile Worker from npm what it makes of a crontab, and write our result in its form."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from gw_core import CronItem
from gw_core.crontab import parse_crontab
from gw_core.errors import CrontabError

SCRIPT = Path(__file__).with_name("parse_crontab.mjs")


def digests() -> list[dict[str, int]]:
    """Times that distinguish any two schedules: every value of each field beside a few of the others."""
    found = [
        {"min": minute, "hour": hour, "date": 1, "month": 1, "dow": 0}
        for minute in range(60)
        for hour in range(24)
        if minute in (0, 5, 30) or hour in (0, 4, 8)
    ]
    for minute, hour in ((0, 0), (30, 4), (5, 8)):
        found += [
            {"min": minute, "hour": hour, "date": date, "month": month, "dow": dow}
            for date in range(1, 32)
            for month in range(1, 13)
            for dow in range(7)
        ]
    return found


DIGESTS = digests()


@dataclass(frozen=True)
class NodeCrontab:
    """Graphile Worker's entry module and a Node.js that runs it, both from npm."""

    node: str
    entry: str


def node_results(node: NodeCrontab, crontabs: list[str]) -> list[dict[str, Any]]:
    """The result of Graphile Worker's parser for each crontab: its items, or its error."""
    question = json.dumps({"crontabs": crontabs, "digests": DIGESTS})
    command = [node.node, str(SCRIPT), node.entry]
    done = subprocess.run(command, input=question, capture_output=True, text=True, check=True, timeout=200)
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return [_without_absent(answer) for answer in answers]


def our_answer(crontab: str) -> dict[str, Any]:
    """The result of our parser, in the form of `node_results`."""
    try:
        return {"items": [as_node(item) for item in parse_crontab(crontab)]}
    except CrontabError as error:
        return {"error": str(error)}


def as_node(item: CronItem) -> dict[str, Any]:
    options = {
        "backfillPeriod": item.fill // timedelta(milliseconds=1),
        "maxAttempts": item.max_attempts,
        "queueName": item.queue_name,
        "priority": item.priority,
        "jobKey": item.job_key,
        "jobKeyMode": str(item.job_key_mode) if item.job_key is not None else None,
    }
    return {
        "task": item.task,
        "identifier": item.identifier,
        "options": {name: value for name, value in options.items() if value is not None},
        "payload": item.payload,
        "fires": "".join("1" if _fires(item, digest) else "0" for digest in DIGESTS),
    }


def _fires(item: CronItem, digest: dict[str, int]) -> bool:
    schedule = item.schedule
    return (
        digest["min"] in schedule.minutes
        and digest["hour"] in schedule.hours
        and schedule.matches_day(digest["date"], digest["month"], digest["dow"])
    )


def _without_absent(answer: dict[str, Any]) -> dict[str, Any]:
    """Drop options that are null in JSON: for Graphile Worker they are undefined."""
    for item in answer.get("items", []):
        item["options"] = {name: value for name, value in item["options"].items() if value is not None}
    return answer
