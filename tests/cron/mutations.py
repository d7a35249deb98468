"""Crontab lines spoiled at random; run as a program, a fuzzer that goes on for a given number of lines.

python tests/cron/mutations.py --lines 10000000 --seed 7
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

TAME_LINES = [
    "30 4 * * 1 send_weekly_email ?fill=2d&max=10 {onboarding:false}",
    "0 */4 * * * rollup",
    "*/5 8-17 1,15 */3 1-5 reports/weekly ?id=a&queue=q&jobKey=k%20k&jobKeyMode=preserve_run_at&priority=-3",
    """* * * * * t {a:[1,0x1F,.5,{b:null}],'c d':"e\\u0041",f:-Infinity,/*g*/}""",
    "# a comment",
    '59 23 31 12 7 a:b-c_d {"strict":[true,false,null,1e3]}',
]
PIECES = [
    *"0123456789*/,- ?&={}[]:'\"\\.+%#_aZ\t\r\n\v\x00\x1b\x85\u00a0\u2028\ufeff\ud800äß😀",
    *["?id=", "fill=1d", "max=0", "jobKey=", "priority=", "{a:1}", "* * * * * ", "*/", "1-", "NaN", "\\u", "0x"],
    *["[" * 50, "{a:" * 50, "9" * 400, "1," * 300, "%00", "//", "/*", "*/", "__proto__:"],
]
IDLE = re.compile("[\ufeff \t\v\f\r\n\u00a0\u2028]*(?:#.*)?", re.DOTALL)


def mutated(line: str, chance: random.Random, pieces: list[str] = PIECES) -> str:
    """The line with one to four things put in, taken out, or replaced by the end of another."""
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(line) + 1)
        kind = chance.random()
        if kind < 0.5:
            line = line[:place] + chance.choice(pieces) + line[place:]
        elif kind < 0.8:
            line = line[:place] + line[place + chance.randint(1, 4) :]
        else:
            other = chance.choice(TAME_LINES)
            line = line[:place] + other[chance.randrange(len(other)) :]
    return line


def read_mutated_lines(count: int, seed: int) -> float:
    """Read `count` spoiled lines, check that none is dropped, and return the slowest one's seconds of CPU."""
    from gw_core.crontab import read_crontab

    chance = random.Random(seed)
    slowest = 0.0
    for _ in range(count):
        line = mutated(chance.choice(TAME_LINES), chance)
        began = time.process_time()
        items, errors = read_crontab(line)
        slowest = max(slowest, time.process_time() - began)
        meant = sum(1 for part in re.split("\r?\n", line) if not IDLE.fullmatch(part))
        if len(items) + len({error.line for error in errors}) != meant:
            raise AssertionError(f"something was dropped from {line!r}")
    return slowest


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=1_000_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    slowest = read_mutated_lines(given.lines, given.seed)
    print(f"{given.lines} lines read or refused; the slowest took {slowest * 1000:.1f} ms")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
