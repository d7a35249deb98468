"""Our parser and Graphile Worker's agree, line by line, except for the documented differences."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from mutations import PIECES, TAME_LINES, mutated
from node_crontab import NodeCrontab, node_results, our_answer
from support.profiles import scaled

SPOILED_LINES = min(3_000, scaled(3_000))  # Node.js answers with thousands of digits for each

pytestmark = pytest.mark.interop

TIMES = [
    "* * * * *",
    "0 * * * *",
    "59 23 31 12 6",
    "0 0 1 1 0",
    "0 0 * * 7",
    "0 0 * * 0,7",
    "0 0 * * 5-7",
    "0 0 * * 0-7",
    "0 0 * * 6-7",
    "0 0 * * 1-5",
    "0 0 1 * 1",
    "0 0 1,15 * 1",
    "0 0 */2 * *",
    "0 0 */2 * 1",
    "0 0 */1 * 1",
    "0 0 1-31 * 1",
    "0 0 1 * 0-6",
    "0 0 1 * */1",
    "0 0 1 * */2",
    "0 0 * * */3",
    "0 0 * */5 *",
    "0 0 * */2 *",
    "0 0 29 2 *",
    "0 0 30 2 *",
    "*/7 * * * *",
    "*/60 * * * *",
    "*/59 */23 */30 */11 */6",
    "*/999999999999999999999 * * * *",
    "0,15,30,45 * * * *",
    "45,30,15,0,0,15 * * * *",
    "1-5,*/20,7 * * * *",
    "0-59 0-23 1-31 1-12 0-6",
    "00 00 01 01 00",
    "0000000005 * * * *",
    "5 04 * 02 *",
    "30 4 * * 1",
    "0 */4 * * *",
    "1,2-4,*/30 5-8,*/12 */15,2 1-3,12 2,5-7",
    "*,5 * * * *",
    "*/1 * * * *",
]
WRONG_TIMES = [
    "60 * * * *",
    "* 24 * * *",
    "* * 32 * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * 0 *",
    "* * * * 8",
    "* * * * 7-8",
    "* * * 0-5 *",
    "* * 0-5 * *",
    "50-61 * * * *",
    "5-5 * * * *",
    "5-4 * * * *",
    "22-2 * * * *",
    "*/0 * * * *",
    "*/00 * * * *",
    "*/ * * * *",
    "*5 * * * *",
    "1/5 * * * *",
    "1-10/2 * * * *",
    "*/5-10 * * * *",
    ", * * * *",
    "1, * * * *",
    ",1 * * * *",
    "1,,2 * * * *",
    "- * * * *",
    "1- * * * *",
    "-1 * * * *",
    "1-2-3 * * * *",
    "** * * * *",
    "99999999999999999999 * * * *",
    "1-99999999999999999999 * * * *",
    "* * * jan *",
    "* * * * mon",
    "? * * * *",
    "* * * * L",
    "1.5 * * * *",
    "1;2 * * * *",
    "@daily",
    "* * * *",
    "0 0 * * * *",
]
COMMANDS = [
    "task",
    "_task",
    "a",
    "send_weekly_email",
    "reports/weekly/all",
    "a:b-c_d/E9",
    "__",
    "task ?id=a",
    "task ?id=_a-9",
    "task ?fill=1s",
    "task ?fill=4w3d2h1m",
    "task ?fill=1m1h1m",
    "task ?fill=0d",
    "task ?fill=007d",
    "task ?max=1",
    "task ?max=0010",
    "task ?max=32767",
    "task ?queue=a:b-c_9",
    "task ?priority=-4",
    "task ?priority=0",
    "task ?priority=32767",
    "task ?priority=-32768",
    "task ?jobKey=key",
    "task ?jobKey=a+b%20c%26d%3De",
    "task ?jobKey=%zz%",
    "task ?jobKey=%C3%A4%F0%9F%98%80",
    "task ?jobKey=%FF",
    "task ?jobKey=a=b",
    "task ?jobKey=key&jobKeyMode=replace",
    "task ?jobKeyMode=preserve_run_at&jobKey=key",
    "task ?id=x&fill=1d&max=3&queue=q&jobKey=k&jobKeyMode=preserve_run_at&priority=5",
    "task ?&id=a&",
    "task ?&",
    "task ?%69d=a",
    "task {}",
    "task {a:1}",
    'task {"a":1}',
    "task {a:1,}",
    "task {'a b':\"c\",d:[1,2,{e:null}],f:true,}",
    "task {a:0x1F,b:.5,c:5.,d:+3,e:-2e3}",
    "task {a:/*x*/1}",
    r"task {a:'\x41\u0042\'\q\v'}",
    "task {$a_1:1,ü:2}",
    r"task {\u0061b:3}",
    "task {if:1,null:2,Infinity:3}",
    "task {a:{b:{c:{d:[[[1]]]}}}}",
    "task {a:1,a:2}",
    "task {a:'x\ty'}",
    "task {a:'b}'}",
    "task {a:1}   ",
    "task\t?id=a\t{a:1}",
    "task ?id=a   {a:1}",
    "task {_cron:1}",
    "task ?fill=1d {a:'?id=b'}",
    'task {"__proto__":1}',
    "task {a:'ä😀'}",
]
WRONG_COMMANDS = [
    "",
    "9task",
    "-task",
    "/task",
    "tä",
    "task?id=a",
    "task{a:1}",
    "task ?",
    "task ? {a:1}",
    "task extra",
    "task # comment",
    "task ?id=a ?max=1",
    "task {a:1} ?id=a",
    "task {a:1} {b:2}",
    "task [1]",
    "task 'x'",
    "task null",
    "task {",
    "task }",
    "task {a}",
    "task {a:}",
    "task {a:1",
    "task {a:1}}",
    "task {,}",
    "task {a:01}",
    "task {a:1//x}",
    "task {a:'x}",
    r"task {a:'\u00zz'}",
    r"task {a:'\01'}",
    "task {a:undefined}",
    "task {2a:1}",
    "task ?id=9",
    "task ?id=",
    "task ?id",
    "task ?id=a/b",
    "task ?id=a&id=b",
    "task ?ID=a",
    "task ?nope=1",
    "task ?=1",
    "task ?fill=1",
    "task ?fill=",
    "task ?fill=d",
    "task ?fill=1y",
    "task ?fill=1.5h",
    "task ?fill=-1h",
    "task ?max=-1",
    "task ?max=1.5",
    "task ?max=x",
    "task ?max=",
    "task ?max=%31%0A",
    "task ?queue=",
    "task ?queue=a b",
    "task ?queue=a%20b",
    "task ?priority=",
    "task ?priority=+1",
    "task ?priority=1e2",
    "task ?jobKey=a%0Ab",
    "task ?jobKey=a&jobKeyMode=unsafe_dedupe",
    "task ?jobKey=a&jobKeyMode=",
    "task ?id=a&max",
    "task ?id=x{a:1}",
]
FILES = [
    "",
    "\n\n",
    "# only a comment",
    "   # an indented comment",
    "\ufeff* * * * * a\r\n\r\n* * * * * b\r\n",
    "* * * * * a\n* * * * * b\n",
    "* * * * * a\n* * * * * a ?id=b\n",
    "* * * * * a\n* * * * * a\n",
    "* * * * * a\n* * * * * b ?id=a\n",
    "* * * * * a\nnonsense\n* * * * * b\n",
    "\t *  *\t*   * *   a  \t",
    "\u00a0*\u2003* * * * a\u3000",
    "*\u2028* * * * a",
    "* * * * * a\u2028{b:1}",
    "* * * * * a\rb",
    "* * * * * a\x85",
    "* * * * *\x1ca",
    "* * * * * a {b:'\u2029'}",
]

ALIKE = [
    *(f"{times} task" for times in TIMES),
    *(f"{times} task" for times in WRONG_TIMES),
    *(f"* * * * * {command}" for command in COMMANDS),
    *(f"* * * * * {command}" for command in WRONG_COMMANDS),
    *FILES,
]

# Each of these stands in docs/guide/recurring-tasks.md, "Differences from Graphile Worker", with its reason.
WE_REJECT = [
    "* * * * * task ?max=0",
    "* * * * * task ?max=32768",
    "* * * * * task ?priority=32768",
    "* * * * * task ?priority=-32769",
    "* * * * * task ?jobKey=",
    "* * * * * task ?jobKey",
    "* * * * * task ?jobKey=%00",
    "* * * * * task ?jobKeyMode=preserve_run_at",
    f"* * * * * task ?jobKey={'k' * 513}",
    f"* * * * * task ?queue={'q' * 129}",
    f"* * * * * task ?id={'i' * 513}",
    f"* * * * * {'t' * 129}",
    "* * * * * task ?fill=9999w",
    "* * * * * task {a:NaN}",
    "* * * * * task {a:-Infinity}",
    "* * * * * task {a:1e999}",
    r"* * * * * task {a:'\0'}",
    r"* * * * * task {a:'\ud800'}",
    f"* * * * * task {{a:{'[' * 30}{']' * 30}}}",
    f'* * * * * task {{"a":"{"x" * 10_000}"}}',
]
WE_ACCEPT = [
    "* * * * * shop.tasks.task",
    "* * * * * task ?job_key=a",
    "* * * * * task ?job_key=a&job_key_mode=preserve_run_at",
    r"* * * * * task {\u061b:3}",
]


def test_the_table_is_large_enough() -> None:
    assert len(set(ALIKE)) >= 120


def test_every_line_is_parsed_or_rejected_as_graphile_worker_does(node: NodeCrontab) -> None:
    differences = [
        (text, theirs, ours)
        for text, theirs in zip(ALIKE, node_results(node, ALIKE), strict=True)
        if not _same(theirs, ours := our_answer(text))
    ]

    assert differences == []


def test_the_deliberate_differences_are_real(node: NodeCrontab) -> None:
    theirs = node_results(node, [*WE_REJECT, *WE_ACCEPT])

    assert [text for text, answer in zip(WE_REJECT, theirs, strict=False) if "error" in answer] == []
    assert [text for text in WE_REJECT if "items" in our_answer(text)] == []
    assert [text for text, answer in zip(WE_ACCEPT, theirs[len(WE_REJECT) :], strict=True) if "items" in answer] == []
    assert [text for text in WE_ACCEPT if "error" in our_answer(text)] == []


DELIBERATE = re.compile(
    "it must lie between|job key is empty|far too large|more than ten years|nested too deeply"
    "|which JSON cannot hold|cannot be written as JSON|contains .u0000|without a jobKey|holds a character PostgreSQL"
    "|characters long|the payload cannot be read"
)


def test_spoiled_lines_are_parsed_or_rejected_as_graphile_worker_does(node: NodeCrontab) -> None:
    chance = random.Random(4)
    tame = [*TAME_LINES, *(text for text in ALIKE if len(text) < 200)]
    # Left out: what cannot be sent to another program, and the differences about escaped keys, dots and long numbers.
    pieces = [piece for piece in PIECES if piece not in ("\ud800", "\\", "\\u", "9" * 400) and "." not in piece]
    lines = [mutated(chance.choice(tame), chance, pieces) for _ in range(SPOILED_LINES)]

    differences = [
        (line, theirs, ours)
        for line, theirs in zip(lines, node_results(node, lines), strict=True)
        if not _same(theirs, ours := our_answer(line)) and not DELIBERATE.search(ours.get("error", ""))
    ]

    assert differences == []


def _same(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    if "error" in theirs or "error" in ours:
        return "error" in theirs and "error" in ours
    return bool(theirs == ours)
