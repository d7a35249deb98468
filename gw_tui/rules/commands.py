"""Everything the console can be told, in one table: it makes the bindings, the help, the palette and the key bar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

# -- the screens -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A screen with its key; `home` is the module and the class, imported when it is first shown."""

    id: str
    key: str
    title: str
    short: str
    home: tuple[str, str]
    help: str


PLACES: Final = (
    Place("overview", "1", "Overview", "Over", ("overview", "OverviewScreen"), "Is it healthy, and where is the pain."),
    Place("jobs", "2", "Jobs", "Jobs", ("jobs", "JobsScreen"), "Find jobs, and act on them."),
    Place("queues", "3", "Queues", "Queu", ("queues", "QueuesScreen"), "Named queues: who holds them, and what waits."),
    Place("workers", "4", "Workers", "Work", ("workers", "WorkersScreen"), "Who works, and who went silent."),
    Place("cron", "5", "Cron", "Cron", ("cron", "CronScreen"), "Recurring tasks: known, next and missed."),
    Place("locks", "6", "Locks", "Lock", ("locks", "LocksScreen"), "What the doctor says, and who blocks whom."),
    Place("events", "7", "Events", "Even", ("events", "EventsScreen"), "What this console saw and did."),
)
JOB: Final = "job"
"""The screen of one job, pushed over another."""

PLACE_OF: Final[Mapping[str, Place]] = {place.id: place for place in PLACES}


# -- the commands ----------------------------------------------------------------------------------------------------


class Risk(Enum):
    """What a command may do to the queue."""

    NONE = 0
    ACTS = 1
    """It changes jobs, and can be taken back or does no harm."""
    DESTROYS = 2
    """It removes something, or may make a job run twice."""


class Requirement(Enum):
    """What must be there for a command to make sense."""

    ROW = "a row under the cursor"
    ANSWERS = "a database that answers"
    TROUBLE = "a database that does not answer"
    CHANGES = "changes that wait to be shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """What is so at the moment, as far as it decides which commands are possible."""

    is_live: bool = True
    is_down: bool = False
    is_read_only: bool = False
    has_row: bool = False
    has_changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing the console can be told; the method that does it is `action_ID` of the screen or the app."""

    id: str
    keys: tuple[str, ...]
    """None for what only the palette offers, unless the user gives it some."""
    label: str
    help: str
    screens: frozenset[str] = field(default=frozenset())
    """Where it is known; everywhere when empty."""
    danger: Risk = Risk.NONE
    needs: Requirement | None = None
    rank: int | None = None
    """Its place in the key bar, from the left; None keeps it out."""

    @property
    def action(self) -> str:
        """What Textual runs for it."""
        return f"go('{self.id.removeprefix('go_')}')" if self.id.startswith("go_") else self.id

    @property
    def is_everywhere(self) -> bool:
        """True when it belongs to the app and not to a screen."""
        return not self.screens

    def possible(self, now: CommandContext) -> bool | None:
        """Return True when it can be given, None when it must wait, False when it makes no sense at all."""
        if self.danger is not Risk.NONE:
            if now.is_read_only:
                return False
            if not now.is_live:
                return None
        if self.needs is Requirement.TROUBLE and not now.is_down:
            return False
        if self.needs is Requirement.CHANGES and not now.has_changes:
            return False
        if self.needs is Requirement.ROW and not now.has_row:
            return None
        return None if self.needs is Requirement.ANSWERS and not now.is_live else True


_LISTS: Final = frozenset({"jobs", "queues", "workers", "cron", "locks", "events", "overview"})
_JOBS: Final = frozenset({"jobs"})
_JOB: Final = frozenset({JOB})
_JOBS_AND_JOB: Final = _JOBS | _JOB


def _go(place: Place) -> Command:
    return Command(id=f"go_{place.id}", keys=(place.key,), label=place.title, help=place.help)


def _known(
    name: str,
    keys: str,
    label: str,
    help: str,
    *,
    on: Set[str] = frozenset(),
    danger: Risk = Risk.NONE,
    needs: Requirement | None = None,
    rank: int | None = None,
) -> Command:
    return Command(
        id=name,
        keys=tuple(keys.split()),
        label=label,
        help=help,
        screens=frozenset(on),
        danger=danger,
        needs=needs,
        rank=rank,
    )


COMMANDS: Final = (
    *(_go(place) for place in PLACES),
    # -- in lists --
    _known(
        "open", "enter", "Open", "Open what the cursor is on.", on=_LISTS - {"events"}, needs=Requirement.ROW, rank=0
    ),
    _known(
        "back",
        "escape",
        "Back",
        "Go back, close, or clear the filter.",
        on=(_LISTS | _JOB) - {"overview", "cron"},
        rank=1,
    ),
    _known("filter", "/", "Filter", "Say which rows to show.", on={"jobs", "queues", "events"}, rank=8),
    _known("next_page", "n", "Next page", "Show the next page.", on={"jobs", "queues"}, rank=20),
    _known("previous_page", "p", "Page back", "Go back one page, exactly.", on={"jobs", "queues"}, rank=21),
    _known("order", "s", "Order", "Take the next order this list can be shown in.", on=_JOBS, rank=22),
    _known("mark", "m", "Mark", "Mark or unmark the row under the cursor.", on=_JOBS, needs=Requirement.ROW, rank=7),
    _known(
        "mark_range",
        "M",
        "Mark to here",
        "Mark every row from the last mark to the cursor.",
        on=_JOBS,
        needs=Requirement.ROW,
    ),
    _known("mark_page", "A", "Mark page", "Mark every row of the page.", on=_JOBS),
    _known("mark_all", "ctrl+a", "Mark all", "Mean all jobs that match the filter, counted first.", on=_JOBS),
    _known(
        "changes",
        ".",
        "Show changes",
        "Show what changed while rows were held in place.",
        on=_LISTS,
        needs=Requirement.CHANGES,
        rank=9,
    ),
    _known("follow", "F", "Follow", "Stay at the top of the list, the newest jobs first; moving ends it.", on=_JOBS),
    _known(
        "exact",
        "=",
        "Exact",
        "Count exactly what is shown as an estimate.",
        on={"overview", "queues"},
        needs=Requirement.ANSWERS,
        rank=23,
    ),
    _known("export", "e", "Export", "Write the page, or what is marked, to a file.", on=_JOBS),
    _known("write", "w", "Write", "Write the events to a file, one JSON object a line.", on={"events"}, rank=2),
    _known("range_shorter", "[", "Shorter", "Let the charts show a shorter time.", on={"overview"}, rank=24),
    _known("range_longer", "]", "Longer", "Let the charts show a longer time.", on={"overview"}, rank=25),
    _known("previous_job", "[", "Previous job", "Go to the job before this one in the list.", on=_JOB, rank=20),
    _known("next_job", "]", "Next job", "Go to the job after this one in the list.", on=_JOB, rank=21),
    _known("unmask", "v", "Unmask", "Show what looks like a secret, or hide it again.", on=_JOBS_AND_JOB, rank=22),
    # -- acts --
    _known(
        "retry",
        "r",
        "Retry",
        "Let the job run again now, with its attempts before it when it had failed for good.",
        on=_JOBS_AND_JOB,
        danger=Risk.ACTS,
        needs=Requirement.ROW,
        rank=2,
    ),
    _known(
        "reschedule",
        "t",
        "Time",
        "Change when the job runs, its priority or its attempts.",
        on=_JOBS_AND_JOB,
        danger=Risk.ACTS,
        needs=Requirement.ROW,
        rank=3,
    ),
    _known(
        "fail",
        "f",
        "Fail",
        "Fail the job for good, so that it is not tried again.",
        on=_JOBS_AND_JOB,
        danger=Risk.DESTROYS,
        needs=Requirement.ROW,
        rank=4,
    ),
    _known(
        "remove",
        "x",
        "Remove",
        "Remove the job as if it had been completed; U brings it back.",
        on=_JOBS_AND_JOB,
        danger=Risk.DESTROYS,
        needs=Requirement.ROW,
        rank=5,
    ),
    _known(
        "remove_by_key",
        "K",
        "Remove by key",
        "Remove the job with a key, whatever it is doing; says which job, and what will happen.",
        on=_JOBS_AND_JOB,
        danger=Risk.DESTROYS,
        rank=28,
    ),
    _known("add", "a", "Add", "Add a job.", on=_JOBS | {"cron"}, danger=Risk.ACTS, rank=26),
    _known(
        "run_now",
        "t",
        "Run now",
        "Add one run of this recurring task now.",
        on={"cron"},
        danger=Risk.ACTS,
        needs=Requirement.ROW,
        rank=3,
    ),
    _known(
        "forget",
        "x",
        "Forget",
        "Let the database forget this recurring task.",
        on={"cron"},
        danger=Risk.DESTROYS,
        needs=Requirement.ROW,
        rank=4,
    ),
    _known(
        "unlock",
        "u",
        "Unlock",
        "Take every job and queue from a worker that is dead.",
        on={"queues", "workers", "jobs", JOB},
        danger=Risk.DESTROYS,
        needs=Requirement.ROW,
        rank=6,
    ),
    _known(
        "sweep",
        "S",
        "Sweep",
        "Give back the jobs of workers that went silent; shows them first.",
        on={"workers", "locks"},
        danger=Risk.DESTROYS,
        rank=5,
    ),
    _known(
        "cleanup",
        "C",
        "Clean up",
        "Clear away failed jobs, unused tasks and unused queues.",
        on={"locks"},
        danger=Risk.DESTROYS,
        rank=6,
    ),
    _known(
        "undo",
        "U",
        "Undo",
        "Bring back what was removed last.",
        on=_JOBS_AND_JOB | {"events"},
        danger=Risk.ACTS,
        rank=27,
    ),
    _known("copy", "y", "Copy", "Copy what the cursor is on.", on=_LISTS | _JOB, needs=Requirement.ROW),
    _known(
        "copy_command",
        "Y",
        "Copy command",
        "Copy what would do this act: the gw command or the SQL.",
        on=_JOBS_AND_JOB | {"queues", "workers", "cron", "locks"},
        needs=Requirement.ROW,
    ),
    # -- everywhere --
    _known("reconnect", "r", "Try now", "Try to reach the database now.", needs=Requirement.TROUBLE, rank=0),
    _known("pause", "space", "Pause", "Stop drawing, or go on; rates are measured all the while.", rank=100),
    _known("faster", "+", "Faster", "Look more often."),
    _known("slower", "-", "Slower", "Look less often."),
    _known("zoom", "z", "Zoom", "Give the focused panel the whole screen, or take it back."),
    _known("help", "? f1", "Help", "Say which keys there are here.", rank=110),
    _known("palette", "ctrl+p :", "Commands", "Find a command by its name.", rank=120),
    _known("jump", "ctrl+o", "Jump", "Show a letter on everything that can be focused; type it to go there."),
    # -- keeping the queue in order: by the palette alone --
    _known(
        "sweep_now",
        "",
        "Sweep the workers that went silent",
        "Give back their jobs and free their queues; shows first what it would do.",
        danger=Risk.DESTROYS,
    ),
    _known(
        "clear_failed_jobs",
        "",
        "Clear away failed jobs",
        "Delete every job that failed for good; counts them first.",
        danger=Risk.DESTROYS,
    ),
    _known(
        "clear_unused_tasks",
        "",
        "Clear away unused tasks",
        "Delete task identifiers without jobs; counts them first.",
        danger=Risk.DESTROYS,
    ),
    _known(
        "clear_unused_queues",
        "",
        "Clear away unused queues",
        "Delete named queues without jobs; counts them first.",
        danger=Risk.DESTROYS,
    ),
    _known(
        "doctor_now", "", "Doctor now", "Ask the doctor at once, and show what is wrong.", needs=Requirement.ANSWERS
    ),
    _known("next_theme", "ctrl+t", "Theme", "Take the next theme."),
    _known("screenshot", "ctrl+s", "Screenshot", "Save the screen as an SVG file."),
    _known("quit", "q ctrl+q", "Quit", "Leave the console.", rank=130),
)

BY_ID: Final[Mapping[str, Command]] = {command.id: command for command in COMMANDS}


EVERYWHERE: Final = tuple(command for command in COMMANDS if command.is_everywhere)


def known_on(screen: str) -> tuple[Command, ...]:
    """Return the commands of a screen, and after them those known everywhere."""
    return (*(command for command in COMMANDS if screen in command.screens), *EVERYWHERE)


# -- keys ------------------------------------------------------------------------------------------------------------

_WRITTEN: Final = {"escape": "esc", "space": "space", "enter": "enter", "f1": "F1", "plus": "+", "minus": "-"}


def written(key: str) -> str:
    """Return a key as people read it: `^p`, `esc`, `R`."""
    return _WRITTEN.get(key, f"^{key.removeprefix('ctrl+')}" if key.startswith("ctrl+") else key)


def with_keys(chosen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of every command, those chosen by the user in place of ours; several are divided by spaces.

    Raises `ValueError` for a command that is none, or a key that two commands of a screen would share.
    """
    for name in chosen:
        if name not in BY_ID:
            raise ValueError(f"there is no command {name!r}; known are {', '.join(BY_ID)}")
    keys = {each.id: tuple(chosen[each.id].split()) if each.id in chosen else each.keys for each in COMMANDS}
    for screen in (*PLACE_OF, JOB):
        _refuse_clash(screen, known_on(screen), keys)
    return keys


def _refuse_clash(screen: str, commands: Iterable[Command], keys: Mapping[str, tuple[str, ...]]) -> None:
    taken: dict[str, str] = {}
    for command in commands:
        for key in keys[command.id]:
            # Trying again is possible only while no act is, so that the two may share a key.
            if taken.setdefault(key, command.id) != command.id and command.id != "reconnect":
                raise ValueError(
                    f"the key {key!r} would mean both {taken[key]} and {command.id} on the screen {screen}"
                )
