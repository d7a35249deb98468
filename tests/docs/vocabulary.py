"""Find private words in pages, programs, SQL and file names: `python tests/docs/vocabulary.py [PATH ...]`."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PHRASES = {
    "mend": (r"mend(?:s|ed|ing)?", "fix"),
    "look": (r"look(?:s|ed|ing)? (?:at|for|on)|(?:a|one|each|every|the|next|last) looks?", "query, check, refresh"),
    "tell": (r"tells?(?! \w+ apart)|told(?! apart)|telling(?! \w+ apart)", "report, notify"),
    "says": (r"says|said|saying", "report, print, show"),
    "hear": (r"hears?|heard|hearing", "receive, listen"),
    "deaf": (r"deaf", "not receiving notifications"),
    "echo": (r"(?:an|the|its|no|each) echo", "ping"),
    "heart": (r"hearts?|beats?|signs? of life", "heartbeat"),
    "silent": (r"silent|silence", "unresponsive, stale"),
    "taken for dead": (r"taken? for dead", "presumed dead"),
    "wish": (r"wish(?:es|ed)?", "request"),
    "in order": (
        r"(?:stop|end|exit|leave|finish|quit|shut down)\w* (?:\w+ )?in order(?! of| to| by)|orderly",
        "gracefully",
    ),
    "ancestor": (r"ancestors?", "Graphile Worker (Node.js)"),
    "Rust port": (r"Rust port", "graphile_worker_rs"),
    "own line": (r"(?:our|gw's) own line", "gw's schema additions"),
    "patience": (r"patience|patient(?:ly)?", "timeout"),
    "upkeep": (r"upkeep|tend(?:s|ed|ing)?(?! to)", "maintenance"),
    "moment": (r"moments?", "time, timestamp"),
    "span": (r"(?:time )?spans?(?: of time)?", "duration"),
    "make up for": (r"ma[kd](?:e|es|ing) up for|made[- ]up", "backfill, demo"),
    "give back": (r"(?:give|gives|gave|given|giving)[ _-]back", "return"),
    "free": (r"free(?:s|d)? (?:the |its |their |all |every |each )?(?:locks?|queues?)", "release"),
    "for good": (r"for good", "permanently"),
    "uncounted": (r"uncounted", "not counted"),
    "strand": (r"strands?", "queue batch"),
    "look-ahead": (r"look-?ahead", "prefetch"),
    "glance": (r"glanc(?:e|es|ed|ing)", "snapshot"),
    "heads": (r"heads", "next jobs"),
    "as seen": (r"as seen", "expected version"),
    "narrowing": (r"narrowing", "conditions"),
    "manners": (r"manners", "session limits"),
    "care": (r"cares?|caring", "manage"),
    "litter": (r"litter|clear(?:s|ed|ing)? away", "cleanup target, clean up"),
    "lend": (r"lend(?:s|er|ers|ing)?|lent", "connection source, pass"),
    "surroundings": (r"surroundings", "context"),
    "standing": (r"(?<!-)standing", "status"),
    "overstep": (r"overstep(?:s|ped)?", "reached"),
    "trial": (r"trials?", "scratch"),
    "act": (r"(?:an|the|each|every|this|one|no) acts?|deeds?", "action"),
    "as typed": (r"as typed|could be typed", "equivalent command"),
    "worry": (r"worr(?:y|ies)|attention", "alert"),
    "trouble": (r"troubles?|faults?", "error, failure"),
    "written down": (r"(?:write|writes|wrote|written|writing) (?:it |them |this )?down", "recorded, saved"),
    "in vain": (r"in vain", "failed"),
    "by hand": (r"by hand", "manually"),
    "by itself": (r"(?:by|of) (?:itself|themselves)", "automatically"),
    "at once": (r"at once", "immediately, at the same time"),
    "anew": (r"anew|once more", "again"),
    "meanwhile": (r"meanwhile", "in the meantime"),
    "at hand": (r"at hand", "available"),
    "any more": (r"any more", "no longer"),
    "for want of": (r"for want of|so many(?! jobs to a claim)", "without, this many"),
    "somebody": (r"(?:some|no|every|any)body|whoever", "the role"),
    "held": (
        r"held (?:queues?|jobs?|rows?|locks?)|(?:queues?|jobs?|rows?) (?:is|are|was|were|that is) held|--held",
        "locked",
    ),
    "sentence": (r"(?:one|a|the|its|whole|clear) sentence", "message"),
    "stretch": (r"stretch(?:es)?", "chunk"),
    "turn": (r"(?:a|each|one|every|next|last) (?:turn|round)(?! trip| of)", "iteration"),
    "refuse": (r"(?<!connection )(?<!connections )refus(?:e|es|ed|al|als|ing)", "reject, deny"),
}
PROSE = re.compile(rf"(?<![\w-])(?:{'|'.join(pattern for pattern, _ in PHRASES.values())})(?!\w)".lower())

NAME_WORD = re.compile(
    r"mend(?:s|ed)?|tells?|told|hears?|heard|hearing|deaf|hearts?|beats?|silent|silence|wish(?:es)?|ancestors?"
    r"|patience|patient|upkeep|tending|moments?|spans?|strands?|glances?|heads|narrowing|manners|litter|lenders?"
    r"|surroundings|standing|overstepped|trial|deeds?|worry|worries|grade|attention|troubles?|faults?|anew"
    r"|somebody|nobody|everybody|whoever|stretch|refuse[ds]?|look(?:s|ed|ing)?|meanwhile|uncounted"
)
NAME_PHRASE = re.compile(
    r"(?:^|_)(give_back|given_back|gave_back|for_good|in_vain|by_hand|at_once|as_typed|in_order)(?:_|$)"
)

ALLOWED = {
    r"queue_heads": "an index in the database keeps its name",
    r"lock_?span|<span|</span|OTEL|opentelemetry|trace_?id|rich\.style": "a span of a trace, of HTML or of styled text",
    r"ECONNREFUSED|ConnectionRefused\w*|connection refused": "the name of an error in POSIX and Python",
    r"troubleshooting": "the name of a page",
    r"fault[- ]injection|inject(?:s|ed)? (?:a |one |its )?faults?": "a term of the field",
    r"faulthandler|segmentation fault|page fault": "terms of Python and the system",
    r"worker:gracefulShutdown|\bpg_\w+": "names of Graphile Worker and PostgreSQL",
    r"in order of|in order to|in order by": "an order of rows",
    r"\.tell\(\)": "the position in a file",
    r"ConnectionError: \S+ refused": "the error of a task in the demo queue",
}
KEPT = re.compile("|".join(ALLOWED), re.IGNORECASE)

TERMS_OF_FILES = (
    (r"otel|opentelemetry|sentry|tracing|observability|changelog|reference/python", r"spans?", "the unit of a trace"),
    (r"chaos", r"faults?", "fault injection"),
    (r"embedded|account", r"nobody", "an account of Unix"),
)
"""Words that are terms of the field in some files: the files, the words, and what they mean there."""

SKIPPED = (
    "tests/docs/vocabulary", "tests/docs/test_vocabulary.py", ".ci/locks/", "completions/", "docs/benchmarks.csv",
    "tests/tui/snapshots/", "docs/pictures/", "LICENSE",
)  # fmt: skip
SUFFIXES = {".py", ".md", ".sql", ".toml", ".mjs", ".js", ".ts", ""}


@dataclass(frozen=True, slots=True)
class Hit:
    """One private word in one line."""

    path: str
    line: int
    text: str
    word: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.word}] {self.text[:140]}"


def files() -> list[Path]:
    """Return the files of the project that people read."""
    # The owner of a checkout in a container is often another user than the one who runs the tests.
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = sorted(ROOT / each for each in listed if not each.startswith(SKIPPED))
    return [path for path in found if path.suffix in SUFFIXES and path.is_file()]


def hits_in(path: Path) -> list[Hit]:
    """Return each private word in a file, and in its name."""
    name = str(path.relative_to(ROOT))
    text = path.read_text("utf-8", "replace")
    found = [Hit(name, 0, name, word) for word in private_names(path.stem.lower().replace("-", "_"))]
    pieces: Iterable[tuple[int, str]]
    if path.suffix == ".py":
        # Most files have no private word anywhere, and taking a file apart is slow.
        pieces = _of_python(text, with_strings=not name.startswith("tests/")) if private_phrases(text) else ()
        if any(map(private_names, set(re.findall(r"\w+", text)))):
            found += [Hit(name, line, word, word) for line, word in _defined(text)]
    elif path.suffix == ".sql":
        pieces = ((n, line.partition("--")[2]) for n, line in enumerate(text.splitlines(), 1))
    else:
        pieces = enumerate(text.splitlines(), 1)
    found += [Hit(name, line, piece.strip(), word) for line, piece in pieces for word in private_phrases(piece)]
    return [hit for hit in found if not _is_a_term(hit)]


def _is_a_term(hit: Hit) -> bool:
    """Return whether the word is a term of the field in this file."""
    return any(
        re.search(files, hit.path) and re.fullmatch(word, hit.word, re.IGNORECASE) for files, word, _ in TERMS_OF_FILES
    )


def private_phrases(text: str) -> list[str]:
    """Return the private words of a text."""
    # Lower case is searched several times faster than without regard to case.
    return PROSE.findall(KEPT.sub(" ", text).lower()) if PROSE.search(text.lower()) else []


@cache
def private_names(name: str) -> list[str]:
    """Return the private words that an identifier is made of."""
    name = KEPT.sub("", name)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return [word for word in snake.split("_") if NAME_WORD.fullmatch(word)] + NAME_PHRASE.findall(snake)


def _of_python(text: str, *, with_strings: bool) -> Iterator[tuple[int, str]]:
    """Yield comments and docstrings, and other strings too if asked, line by line."""
    docstrings = set() if with_strings else _docstring_lines(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_string = token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE"
        if token.type == tokenize.COMMENT or (is_string and (with_strings or token.start[0] in docstrings)):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def _docstring_lines(text: str) -> set[int]:
    """Return the lines at which strings stand alone, as docstrings do."""
    return {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def _defined(text: str) -> Iterator[tuple[int, str]]:
    """Yield private words in the names that a module defines."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                name = node.name
            case ast.arg():
                name = node.arg
            case ast.Name(ctx=ast.Store()):
                name = node.id
            case ast.Attribute(ctx=ast.Store()):
                name = node.attr
            case _:
                continue
        for word in private_names(name):
            yield node.lineno, word


def hits() -> list[Hit]:
    """Return each private word of the project."""
    found: list[Hit] = []
    for path in files():
        with suppress(FileNotFoundError):  # another test has removed its file
            found += hits_in(path)
    return found


def main() -> None:
    for hit in hits():
        if hit.path.startswith(tuple(sys.argv[1:]) or ""):
            print(hit)


if __name__ == "__main__":
    main()
