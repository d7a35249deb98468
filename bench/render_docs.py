"""`python -m bench.render_docs`: write the manual's section of figures from the JSON of one run or more."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import progress, report

HEADING: Final = "## Latest figures"
WORDS: Final = "Read ratios where the spread is narrow, and no more than the order of magnitude where it is wide."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the section, or put it into a page in the place of its last one."""
    given = _parser().parse_args(arguments)
    runs = [report.from_json(json.loads(file.read_text())) for file in given.files]
    if given.seconds:
        print(json.dumps({k: v for _, results in runs for k, v in progress.learned(results).items()}, indent=2))
        return 0
    text = section([_run(where, report.table(results)) for where, results in runs])
    if given.into is None:
        print(text, end="")
    else:
        given.into.write_text(put_into(given.into.read_text(), text))
    return 0


def section(runs: Sequence[str]) -> str:
    """Return the section with these runs."""
    return "\n\n".join((HEADING, WORDS, *runs)) + "\n"


def put_into(page: str, text: str) -> str:
    """Return the page with this section in the place of the one it has."""
    found = re.search(rf"^{HEADING}$.*?(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"the page has no section {HEADING!r}")
    rest = page[found.end() :]
    return page[: found.start()] + text + ("\n" + rest if rest else "")


def _run(where: dict[str, str], table: str) -> str:
    command = where.pop("command", "python -m bench")
    return f"`{command}`:\n\n{report.description(where)}\n\n{table}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.render_docs", description="Write the section of figures from the JSON of python -m bench."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what --json wrote, one file for each run")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put it into this page, for the section it has")
    parser.add_argument(
        "--seconds", action="store_true", help="print how long the benchmarks took, for bench/expected_seconds.json"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
