"""No message contains "1 jobs": a number that varies gets its noun from `counted`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.project_files import project_files

from gw_core.front_ends import counted

ROOT = Path(__file__).parents[1]
NOUNS = re.compile(
    r"^ (jobs|workers|queues|members|tasks|attempts|items|connections|processes|threads|rows|steps|runs|"
    r"others|lines|targets|errors|files)\b"
)
PLURAL_ANYWAY = {
    "record['added_per_second']": "a rate",
    "record['processed_per_second']": "a rate",
    "table.vacuum_after": "thousands of dead rows",
    "most": "a single attempt has words of its own",
    "size": "it is less than one",
    "limit": "it is less than one, or thousands",
    "jobs": "a page that is not the only one",
    "' or more' * around.ahead_is_bound": "a single job has words of its own",
    "formatting.count(task.activity.failed_lately)": "an alert begins at several",
    "formatting.count(task.jobs[JobState.FAILED])": "an alert begins at several",
    "formatting.count(total if total.value >= least else Count(least, Quality.AT_LEAST))": "an estimate of all jobs",
    "len(alive)": "a single worker has words of its own",
    "job.locked_by": "a name, before a verb",
    "skipped.locked_by": "a name, before a verb",
}
"""Expressions whose value may have a plural behind it, with the reason. Constants need none."""


def written_numbers() -> Iterator[tuple[str, int, str]]:
    """Yield file, line and expression of every value in an f-string that a plural noun follows."""
    packages = ("gw_cli", "gw_core", "gw_tui")
    for path in [path for package in packages for path in project_files(ROOT / package, "*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.JoinedStr):
                continue
            for value, text in zip(node.values, node.values[1:], strict=False):
                if (
                    isinstance(value, ast.FormattedValue)
                    and isinstance(text, ast.Constant)
                    and NOUNS.match(str(text.value))
                ):
                    yield str(path.relative_to(ROOT)), node.lineno, ast.unparse(value.value)


def test_a_number_that_varies_has_its_noun_from_counted() -> None:
    found = list(written_numbers())

    assert [each for each in found if not each[2].isupper() and each[2] not in PLURAL_ANYWAY] == []
    assert PLURAL_ANYWAY.keys() <= {expression for _, _, expression in found}


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 jobs are"), (1, "1 job is"), (2, "2 jobs are"), (1200, "1,200 jobs are")]
)
def test_a_number_is_shown_with_its_noun(number: int, shown: str) -> None:
    assert counted(number, "job is", "jobs are") == shown
