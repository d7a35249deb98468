"""Run a command once for each shard: one of several databases that hold queues of the same application."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from gw_cli import output, stderr
from gw_cli.confirmation import Question, Steps, carry_out, confirm_all
from gw_cli.exit_codes import ExitCode, NothingMatchedError, verdict
from gw_cli.settings import Configuration, table
from gw_core.errors import GraphileWorkerError, InvalidInputError

if TYPE_CHECKING:
    from gw_core import Selection

Function = Callable[..., Any]


def shards_of(configuration: Configuration) -> dict[str, Configuration]:
    """Return the configuration of each shard by name; nothing without shards."""
    shards = configuration[table.SHARDS]
    if not shards:
        return {}
    if configuration.origin(table.CONNECTION).kind == "flag":
        if configuration.origin(table.SHARDS).kind != "flag":
            return {}
        raise InvalidInputError("--connection and --shard were both given; give one of them")
    return {name: configuration.derive(table.CONNECTION, each) for name, each in shards.items()}


def for_each_shard(*without: str, ids: str = "") -> Callable[[Function], Function]:
    """Return the decorator that runs a command for each shard, and labels what it prints.

    A shard that cannot be reached does not stop the others. The options `without` need a single database, and so do
    the job ids of a command that acts: those in its parameter `ids`, or in a selection that is this parameter.
    A command that returns `Steps` asks for confirmation, once for all shards.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(configuration: Configuration, **values: Any) -> Any:
            shards = shards_of(configuration)
            if not shards:
                return _carried_out(function(configuration, **values))
            if len(shards) > 1:
                _reject_options(without, values, shards)
                if ids:
                    _reject_ids(values[ids], shards)
            return run_on_each({name: functools.partial(function, each, **values) for name, each in shards.items()})

        return call

    return decorate


def for_one_shard(function: Function) -> Function:
    """Make a command reject several shards: it needs a single database."""

    @functools.wraps(function)
    def call(configuration: Configuration, **values: Any) -> Any:
        shards = shards_of(configuration)
        if len(shards) > 1:
            raise InvalidInputError(f"this command needs a single database; {_add_one_of(shards)}")
        return _carried_out(function(next(iter(shards.values()), configuration), **values))

    return call


def _carried_out(result: Any) -> Any:
    return carry_out(result) if isinstance(result, GeneratorType) else result


def _reject_options(options: Collection[str], values: Mapping[str, Any], shards: Iterable[str]) -> None:
    for name in options:
        if values.get(name):
            raise InvalidInputError(f"--{name} needs a single database; {_add_one_of(shards)}")


def _reject_ids(jobs: Selection | list[str], shards: Iterable[str]) -> None:
    if isinstance(jobs, list) or any(each.term.name == "id" for each in jobs.conditions):
        raise InvalidInputError(f"each database counts its job ids separately; {_add_one_of(shards)}")


def _add_one_of(shards: Iterable[str]) -> str:
    *others, last = (f"--shard {name}" for name in shards)
    return f"add {', '.join(others)} or {last}"


# -- one after the other -----------------------------------------------------------------------------------------------


class _Part:
    """A command on one of several databases; it may stop at its question and go on after it."""

    def __init__(self, name: str, command: Callable[[], Any]) -> None:
        self.name = name
        self.question: Question | None = None
        self.code: int = ExitCode.OK
        self.mistake: InvalidInputError | None = None
        self._command = command
        self._steps: Steps | None = None

    @property
    def acts(self) -> bool:
        """Whether the command changes something, after a question."""
        return self._steps is not None

    def begin(self) -> None:
        """Run the command to its question, or to its end."""
        self._run(self._first)

    def go_on(self) -> None:
        """Run the rest of the command."""
        if (steps := self._steps) is not None:
            self._run(lambda: self._advance(steps))

    def close(self) -> None:
        """Release what a command holds that stopped at its question."""
        if self._steps is not None:
            self._steps.close()

    def report_mistake(self) -> None:
        """Print what is wrong with the input for this database alone."""
        if self.mistake is not None:
            stderr.error(str(self.mistake))

    def _first(self) -> Any:
        result = self._command()
        if not isinstance(result, GeneratorType):
            return result
        self._steps = result
        return self._advance(result)

    def _advance(self, steps: Steps) -> Any:
        try:
            self.question = next(steps)
        except StopIteration as end:
            return end.value
        return ExitCode.OK

    def _run(self, step: Callable[[], Any]) -> None:
        try:
            self.code = step() or ExitCode.OK
        except InvalidInputError as error:
            self.mistake, self.code = error, verdict(error)
        except NothingMatchedError as error:
            stderr.note(str(error))
            self.code = verdict(error)
        except GraphileWorkerError as error:
            stderr.error(str(error))
            self.code = verdict(error)


def run_on_each(commands: Mapping[str, Callable[[], Any]]) -> int:
    """Run a command on each of several databases, label what it prints, and return the worst exit code.

    If it asks for confirmation, it changes none of them before a person agreed to all of it.
    """
    parts = [_Part(name, command) for name, command in commands.items()]
    with output.of_shards() as printed, ExitStack() as stack:
        for each in parts:
            stack.enter_context(closing(each))
        _one_by_one(printed, parts, _Part.begin)
        _report_mistakes(printed, parts)
        asking = [each for each in parts if each.question is not None]
        if asking:
            _ask(parts)
            _one_by_one(printed, asking, _Part.go_on)
            _report_mistakes(printed, asking)
    return worst(each.code for each in parts)


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code; that nothing matched counts only if it is so in every database."""
    found = set(codes)
    return max(found - {ExitCode.NOT_FOUND}, default=ExitCode.NOT_FOUND)


def _one_by_one(printed: output.ShardOutput, parts: Sequence[_Part], step: Callable[[_Part], None]) -> None:
    for number, each in enumerate(parts):
        try:
            with printed.labelled_as(each.name):
                step(each)
        except BaseException:
            left = [other.name for other in parts[number + 1 :]]
            if left and each.acts:
                stderr.note(f"Nothing was done in {', '.join(left)}.")
            raise


def _report_mistakes(printed: output.ShardOutput, parts: Sequence[_Part]) -> None:
    """Report wrong input once if it is wrong for every database."""
    mistakes = [each.mistake for each in parts if each.mistake is not None]
    if len(mistakes) == len(parts) and len({str(each) for each in mistakes}) == 1:
        raise mistakes[0]
    for each in parts:
        with printed.labelled_as(each.name):
            each.report_mistake()


def _ask(parts: Sequence[_Part]) -> None:
    questions = {each.name: each.question for each in parts if each.question is not None}
    nothing = [each.name for each in parts if each.question is None and each.code == ExitCode.NOT_FOUND]
    without = [each.name for each in parts if each.name not in (*questions, *nothing) and each.code != ExitCode.OK]
    confirm_all(questions, nothing=nothing, without=without)
