"""The jobs to which a worker is restricted: all of some tasks, and all in some named queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from gw_core.domain.errors import InvalidInputError, InvalidSettingError
from gw_core.domain.rules.pause import PauseKind, PauseTarget


class Only(msgspec.Struct, frozen=True):
    """The tasks and queues that the setting `only` names; without any, a worker runs all jobs of its tasks."""

    tasks: frozenset[str]
    queues: Sequence[str]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        """Return what these texts name, such as `task:mail` or `queue:billing`. Raises `InvalidSettingError`."""
        try:
            targets = () if isinstance(texts, str) else [PauseTarget.parse(each) for each in texts]
        except InvalidInputError:
            targets = ()
        names = {kind: [each.name for each in targets if each.kind is kind] for kind in PauseKind}
        tasks, queues = names[PauseKind.TASK], names[PauseKind.QUEUE]
        if len(tasks) + len(queues) != len(texts):
            raise InvalidSettingError(
                f"only must be a list of tasks and queues such as task:mail and queue:billing, got {texts!r}"
            )
        return cls(frozenset(tasks), tuple(queues))

    def runs(self, task: str) -> bool:
        """Return whether the worker runs jobs of this task, if only those in the named queues."""
        return not self.tasks or bool(self.queues) or task in self.tasks

    def split(self, tasks: Mapping[int, str]) -> tuple[Mapping[int, str], Mapping[int, str]]:
        """Return the tasks, by their ids, whose jobs the worker runs everywhere, and those in the named queues only."""
        if not self.queues:
            return tasks, {}
        everywhere = {number: name for number, name in tasks.items() if name in self.tasks}
        return everywhere, {number: name for number, name in tasks.items() if number not in everywhere}
