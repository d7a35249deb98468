"""What the guides for operators show is what the program understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted((DOCS / "operations").glob("*.md")),
    *(DOCS / "guide" / f"{name}.md" for name in ("changing-jobs", "import", "limit", "pausing", "troubleshooting")),
]
GUIDE = "".join(page.read_text("utf-8") for page in PAGES)
COMMANDS = re.findall(r"^\$ gw (?!run )(.+)$", GUIDE, re.MULTILINE)

BEFORE = {
    "resume task:send_email": "pause task:send_email",
    "resume cron:nightly_report": "pause cron:nightly_report",
    "limit send_mail --off": "limit send_mail --running 4",
}
"""What has to be done before a command has something to undo."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_the_guide_does_something(gw: CliProgram, queue: Queue, tmp_path: Path, line: str) -> None:
    queue.rows("alter sequence graphile_worker.jobs_id_seq1 restart with 4711")
    first = queue.failed("mail/send", queue_name="imports", job_key="invoice-17")
    queue.set(first, "last_error = 'There is no such customer'")
    queue.running(by="gw-host-1234-abcdef")
    (tmp_path / "jobs.jsonl").write_text('{"task": "hello"}\n')
    (tmp_path / "jobs.csv").write_text("payload\n{}\n")
    if line in BEFORE:
        assert gw(*shlex.split(BEFORE[line])).code == 0

    ended = gw(*shlex.split("bench --count 300" if line == "bench" else line))

    assert ended.code == 0, ended.err
    assert ended.out


def test_the_guide_shows_every_command_it_is_about() -> None:
    shown = {line.split()[0] for line in COMMANDS}

    assert shown >= {"complete", "fail", "reschedule", "retry", "unlock", "add", "cleanup", "doctor", "health"}
