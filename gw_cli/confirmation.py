"""The question before a command changes jobs: one for a database, and one for all of several."""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Mapping
from typing import Any, Final

import msgspec

from gw_cli import stderr
from gw_core.errors import GraphileWorkerError, InvalidInputError
from gw_core.front_ends import counted


class Verb(msgspec.Struct, frozen=True):
    """A command's verb in the forms its sentences need."""

    infinitive: str
    past: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a command is about to change in one database.

    `counts` has the number of each noun, and `kinds` what the things are, such as the tasks of jobs.
    """

    verb: Verb
    counts: Mapping[str, int]
    place: str
    kinds: str = ""
    condition: str = ""

    @property
    def total(self) -> int:
        """How much would change."""
        return sum(self.counts.values())

    @property
    def numbers(self) -> str:
        """The counts with their nouns."""
        return " and ".join(counted(number, noun) for noun, number in self.counts.items())

    @property
    def objects(self) -> str:
        """What would change, and where."""
        return f"{self.numbers}{self.kinds} in {self.place}"

    def __str__(self) -> str:
        return f"{self.verb.infinitive.capitalize()} {self.numbers}{self.condition}{self.kinds} in {self.place}?"


Steps = Generator[Question, None, Any]
"""A command that yields its question before it changes anything, and goes on when a person agreed."""

WITHOUT_TERMINAL: Final = "cannot ask for confirmation without a terminal; pass --yes, or preview with --dry-run"


class DeclinedError(GraphileWorkerError):
    """A person declined to confirm."""


def carry_out(steps: Steps) -> Any:
    """Run a command on a single database, and return what it returns."""
    try:
        question = next(steps)
        confirm(question, f"{question} ")
        next(steps)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()
    raise AssertionError("a command asks once")


def confirm(question: Question, text: str) -> None:
    """Ask a person for confirmation with this text, unless nothing would change.

    Raises `InvalidInputError` without a terminal and `DeclinedError` on a no.
    """
    if not question.total:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInputError(f"{question.numbers} would be {question.verb.past.lower()}: {WITHOUT_TERMINAL}")
    stderr.note(f"{text}Type yes to continue.")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise DeclinedError("nothing was done")


def confirm_all(questions: Mapping[str, Question], *, nothing: Collection[str], without: Collection[str]) -> None:
    """Ask once for several shards; `nothing` matches in some, and the command goes on `without` others."""
    first, *_ = questions.values()
    nouns = [*first.counts]
    sums = {noun: sum(each.counts[noun] for each in questions.values()) for noun in nouns}
    whole = Question(verb=first.verb, counts=sums, place="", condition=first.condition)
    numbers = {name: f"{each.total:,}" if len(nouns) == 1 else each.numbers for name, each in questions.items()}
    shares = ", ".join(f"{name} {number}" for name, number in {**numbers, **dict.fromkeys(nothing, "0")}.items())
    lines = [
        f"{first.verb.infinitive.capitalize()} {whole.numbers}{first.condition} ({shares})?",
        *(f"{name}: {each.objects}" for name, each in questions.items() if each.total),
        *(f"{name}: nothing; see the error above" for name in without),
    ]
    confirm(whole, "\n".join(lines) + "\n")
