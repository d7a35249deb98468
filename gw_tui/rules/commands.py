"""Every command of the console in one table, from which bindings, help, `:` and key bar derive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from functools import partial
from typing import Final

# -- the screens -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScreenInfo:
    """A screen with its key; its module, named like it, is imported when it is first shown."""

    id: str
    key: str
    title: str
    short: str
    help: str


SCREENS: Final = (
    ScreenInfo("overview", "1", "Overview", "Over", "Health, rates and alerts."),
    ScreenInfo("jobs", "2", "Jobs", "Jobs", "Find jobs and act on them."),
    ScreenInfo("queues", "3", "Queues", "Queue", "Named queues: locks and waiting jobs."),
    ScreenInfo("workers", "4", "Workers", "Work", "Workers: heartbeats and locks."),
    ScreenInfo("cron", "5", "Cron", "Cron", "Recurring tasks: next, last and missed runs."),
    ScreenInfo("locks", "6", "Locks", "Lock", "Doctor findings and lock waits."),
    ScreenInfo("events", "7", "Events", "Event", "This console's events and actions."),
    ScreenInfo("tasks", "8", "Tasks", "Task", "Tasks: jobs, failures, waits, known by whom."),
    ScreenInfo("errors", "9", "Errors", "Error", "Errors: equal ones in one row."),
    ScreenInfo("history", "0", "History", "Hist", "Jobs that have ended, with errors."),
)
JOB: Final = "job"
"""The screen of one job, pushed over another."""

SCREEN_BY_ID: Final[Mapping[str, ScreenInfo]] = {screen.id: screen for screen in SCREENS}


# -- the commands ----------------------------------------------------------------------------------------------------

ESSENTIAL: Final = ("filter", "command_line", "help")
"""Commands that always have a place in the key bar; `:` and the help lead to all others."""


class Risk(Enum):
    """What a command may do to the queue."""

    NONE = 0
    CHANGES = 1
    """It changes jobs, and can be taken back or does no harm."""
    DESTROYS = 2
    """It removes something, or may make a job run twice."""


class Requirement(Enum):
    """What must be there for a command to make sense."""

    ROW = "a row under the cursor"
    ANSWERS = "a database that answers"
    FAILURE = "a database that does not answer"
    CHANGES = "changes that wait to be shown"
    REPLAY = "a recording that is played"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The current state, as far as it determines which commands are possible."""

    is_live: bool = True
    is_down: bool = False
    is_read_only: bool = False
    is_replay: bool = False
    has_row: bool = False
    has_changes: bool = False
    is_served: bool = False
    """Shown in a browser, which has neither files nor a shell here."""


@dataclass(frozen=True, slots=True)
class ConsoleCommand:
    """One command of the console; the method that does it is `action_ID` of the screen or the app."""

    id: str
    usual_keys: str
    """Empty for what only `:` offers, unless the user gives it some."""
    label: str
    help: str
    _: KW_ONLY
    on: Set[str] = frozenset()
    """The screens that know it; all of them when empty."""
    risk: Risk = Risk.NONE
    needs: Requirement | None = None
    is_typed: bool = False
    """It opens a line: what is typed right after its key belongs there, also before the line is shown."""
    is_local: bool = False
    """It writes a file, or returns to the shell."""
    rank: int | None = None
    """Its place in the key bar, from the left; None keeps it out."""
    short: str = ""
    """Its label in a key bar without room for all labels; the label itself when empty."""

    @property
    def keys(self) -> Sequence[str]:
        """The keys that we give it."""
        return self.usual_keys.split()

    @property
    def action(self) -> str:
        """What Textual runs for it."""
        return f"go('{self.id.removeprefix('go_')}')" if self.id.startswith("go_") else self.id

    @property
    def is_everywhere(self) -> bool:
        """True when it belongs to the app and not to a screen."""
        return not self.on

    @property
    def weight(self) -> tuple[int, int]:
        """How early it gets a place in the key bar, the lowest first: acts on the row come before everything else."""
        if self.needs is Requirement.FAILURE:
            return 0, 0  # nothing else is possible then
        if self.needs is Requirement.ROW:
            return 1, self.rank or 0
        if self.id in ESSENTIAL:
            return 2, ESSENTIAL.index(self.id)
        is_early = self.risk is not Risk.NONE or self.id == "quit"
        return 3 if is_early else 4, self.rank or 0

    def why_not(self, now: CommandContext) -> str:
        """Return why it cannot be given now; empty when it can."""
        if self.possible(now):
            return ""
        if self.risk is not Risk.NONE and now.is_read_only:
            return f"{self.label} needs write access: this console is read-only"
        if self.is_local and now.is_served:
            return f"{self.label} is not available in a browser"
        if not now.is_live and (self.risk is not Risk.NONE or self.needs is Requirement.ANSWERS):
            return f"{self.label} must wait: the database does not answer"
        return f"{self.label} needs {self.needs.value}" if self.needs is not None else ""

    def possible(self, now: CommandContext) -> bool | None:
        """Return True when it can be given, None when it must wait, False when it makes no sense at all."""
        if self.risk is not Risk.NONE:
            if now.is_read_only:
                return False
            if not now.is_live:
                return None
        if self.is_local and now.is_served:
            return False
        if self.needs is Requirement.FAILURE and not now.is_down:
            return False
        if self.needs is Requirement.CHANGES and not now.has_changes:
            return False
        if self.needs is Requirement.REPLAY and not now.is_replay:
            return False
        if self.needs is Requirement.ROW and not now.has_row:
            return None
        return None if self.needs is Requirement.ANSWERS and not now.is_live else True


_LISTS: Final = frozenset(
    {"jobs", "queues", "workers", "cron", "locks", "events", "overview", "tasks", "errors", "history"}
)
_FILTERED: Final = frozenset({"jobs", "queues", "events", "history"})
_TABLES: Final = _LISTS - {"overview"}
_JOBS: Final = frozenset({"jobs"})
_JOB: Final = frozenset({JOB})
_OF_JOBS: Final = _JOBS | _JOB


_known = ConsoleCommand
_row = partial(ConsoleCommand, needs=Requirement.ROW)
_change = partial(_row, risk=Risk.CHANGES)
_destroy = partial(_row, risk=Risk.DESTROYS)
_maintain = partial(ConsoleCommand, risk=Risk.DESTROYS)

COMMANDS: Final = (
    *(ConsoleCommand(f"go_{each.id}", each.key, each.title, each.help) for each in SCREENS),
    # -- in lists --
    _row("open", "enter", "Open", "Open the selected row.", on=_LISTS - {"events"}, rank=0),
    _known(
        "back",
        "escape",
        "Back",
        "Go back, close, or clear the filter.",
        on=(_LISTS | _JOB) - {"overview", "cron", "tasks", "errors"},
        rank=1,
    ),
    _known("filter", "/", "Filter", "Filter the rows.", on=_FILTERED, rank=8, is_typed=True),
    _known("next_page", "n", "Next page", "Show the next page.", on={"jobs", "queues", "history"}, rank=20),
    _known("previous_page", "p", "Page back", "Show the previous page.", on={"jobs", "queues", "history"}, rank=21),
    _known("order", "s", "Sort", "Sort by the next column.", on=_TABLES, rank=22),
    _known("reverse_order", "i", "Reverse", "Reverse the sort order.", on=_TABLES),
    _known("columns", "o", "Columns", "Choose the columns and the sort order.", on=_TABLES),
    _row("mark", "m", "Mark", "Mark or unmark the selected row.", on=_JOBS, rank=7),
    _row("mark_range", "M", "Mark to here", "Mark all rows from the last mark to the cursor.", on=_JOBS),
    _known("mark_page", "A", "Mark page", "Mark all rows of the page.", on=_JOBS),
    _known("mark_all", "ctrl+a", "Mark all", "Mark all jobs that match the filter.", on=_JOBS),
    _known(
        "show_changes",
        ".",
        "Show changes",
        "Show what changed while the rows on the screen were frozen.",
        on=_LISTS,
        needs=Requirement.CHANGES,
        rank=9,
    ),
    _known("follow", "F", "Follow", "Follow the newest jobs; moving the cursor ends it.", on=_JOBS),
    _known(
        "count_exactly",
        "=",
        "Exact",
        "Count exactly instead of estimating.",
        on={"overview", "queues"},
        needs=Requirement.ANSWERS,
        rank=23,
    ),
    _known("export", "e", "Export", "Export the marked jobs or the page to a file.", on=_JOBS, is_local=True),
    _known("write", "w", "Write", "Write the events to a file as JSON lines.", on={"events"}, rank=2, is_local=True),
    _known("range_shorter", "[", "Shorter", "Show a shorter time range in the charts.", on={"overview"}, rank=24),
    _known("range_longer", "]", "Longer", "Show a longer time range in the charts.", on={"overview"}, rank=25),
    _known("previous_job", "[", "Previous job", "Show the previous job of the list.", on=_JOB, rank=20),
    _known("next_job", "]", "Next job", "Show the next job of the list.", on=_JOB, rank=21),
    _known("unmask", "v", "Unmask", "Show or mask secrets.", on=_OF_JOBS, rank=22),
    # -- actions --
    _change("retry", "r", "Retry", "Retry the job now, with new attempts if none are left.", on=_OF_JOBS, rank=2),
    _change("probe", "r", "Retry one", "Retry one job of the group as a probe.", on={"errors"}, rank=2),
    _change(
        "retry_group", "R", "Retry all", "Retry all jobs of the group, after a confirmation.", on={"errors"}, rank=3
    ),
    _change("reschedule", "t", "Time", "Change the job's time, priority or attempts.", on=_OF_JOBS, rank=3),
    _destroy("fail", "f", "Fail", "Fail the job permanently.", on=_OF_JOBS | {"errors"}, rank=4),
    _destroy(
        "complete",
        "x",
        "Complete",
        "Delete the job as if it had completed; U restores it.",
        on=_OF_JOBS,
        rank=5,
        short="Done",
    ),
    _destroy("cancel", "c", "Cancel", "Cancel a job that runs or waits for others.", on=_OF_JOBS, rank=4),
    _maintain(
        "remove_by_key", "K", "Remove by key", "Remove the job with a key, even if it is running.", on=_OF_JOBS, rank=28
    ),
    _known("add", "a", "Add", "Add a job.", on=_JOBS | {"cron"}, rank=26, risk=Risk.CHANGES),
    _change("run_now", "t", "Run now", "Add one run of this recurring task now.", on={"cron"}, rank=3),
    _destroy("forget", "x", "Forget", "Forget this recurring task in the database.", on={"cron"}, rank=4),
    _destroy(
        "unlock",
        "u",
        "Unlock",
        "Release all locks of a dead worker.",
        on={"queues", "workers", "overview"} | _OF_JOBS,
        rank=7,
    ),
    _change(
        "pause",
        "P",
        "Pause task",
        "Pause the task, queue or recurring task under the cursor, or resume it.",
        on={"queues", "tasks", "overview", "cron"} | _OF_JOBS,
        rank=6,
        short="Pause",
    ),
    _change("limit", "L", "Limit", "Change the limit of the task under the cursor.", on={"tasks", "overview"}, rank=8),
    _destroy(
        "end_session",
        "E",
        "End session",
        "End the session that blocks others; its transaction is rolled back.",
        on={"locks", "overview"},
        rank=6,
    ),
    _maintain(
        "sweep", "S", "Sweep", "Recover the jobs of stale workers, after a preview.", on={"workers", "locks"}, rank=5
    ),
    _maintain("cleanup", "C", "Clean up", "Delete failed jobs, unused tasks or unused queues.", on={"locks"}, rank=6),
    _known(
        "undo", "U", "Undo", "Restore the jobs completed last.", on=_OF_JOBS | {"events"}, rank=27, risk=Risk.CHANGES
    ),
    _row("copy", "y", "Copy", "Copy the selected row's id or text.", on=_LISTS | _JOB),
    _row(
        "copy_command",
        "Y",
        "Copy command",
        "Copy the equivalent gw command.",
        on=_OF_JOBS | {"queues", "workers", "cron", "locks"},
    ),
    # -- everywhere --
    _known("reconnect", "r", "Reconnect", "Reconnect to the database now.", needs=Requirement.FAILURE, rank=0),
    _known("freeze", "space", "Freeze", "Freeze or unfreeze the display; measuring continues.", rank=100),
    _known("seek_back", "<", "Back 30 s", "Move the recording back.", needs=Requirement.REPLAY, rank=101),
    _known("seek_forward", ">", "On 30 s", "Move the recording forward.", needs=Requirement.REPLAY, rank=102),
    _known("suspend", "ctrl+z", "Suspend", "Return to the shell; fg continues.", is_local=True),
    _known("faster", "+", "Faster", "Refresh more often."),
    _known("slower", "-", "Slower", "Refresh less often."),
    _known("zoom", "z", "Zoom", "Maximize or restore the focused panel."),
    _known("help", "? f1", "Help", "List the keys of this screen.", rank=110),
    _known(
        "command_line",
        ": ctrl+p",
        "Commands",
        "Find a command by its name, or type one, such as jobs state:failed task:send*.",
        rank=105,
        is_typed=True,
        short="Cmds",
    ),
    _known("views", "V", "Views", "Open a saved view of gw.toml."),
    _known("contexts", "D", "Databases", "Show another database."),
    # -- keeping the queue in order: by `:` alone --
    _maintain("sweep_now", "", "Sweep stale workers", "Recover their jobs and release their queues, after a preview."),
    _maintain(
        "cleanup_failed_jobs", "", "Clean up failed jobs", "Delete permanently failed jobs, after counting them."
    ),
    _maintain("cleanup_unused_tasks", "", "Clean up unused tasks", "Delete tasks without jobs, after counting them."),
    _maintain(
        "cleanup_unused_queues", "", "Clean up unused queues", "Delete named queues without jobs, after counting them."
    ),
    _known("run_doctor", "", "Run doctor", "Run the doctor's checks and show the findings.", needs=Requirement.ANSWERS),
    _known("next_theme", "ctrl+t", "Theme", "Switch to the next theme."),
    _known("screenshot", "ctrl+s", "Screenshot", "Save the screen as an SVG file.", is_local=True),
    _known("quit", "q ctrl+q", "Quit", "Leave the console.", rank=130),
)

BY_ID: Final[Mapping[str, ConsoleCommand]] = {command.id: command for command in COMMANDS}


EVERYWHERE: Final = tuple(command for command in COMMANDS if command.is_everywhere)


def known_on(screen: str) -> tuple[ConsoleCommand, ...]:
    """Return the commands of a screen, and after them those known everywhere."""
    return (*(command for command in COMMANDS if screen in command.on), *EVERYWHERE)


# -- keys ------------------------------------------------------------------------------------------------------------

_WRITTEN: Final = {"escape": "esc", "space": "space", "enter": "enter", "f1": "F1", "plus": "+", "minus": "-"}


def written(key: str) -> str:
    """Return a key as people read it: `^p`, `esc`, `R`."""
    return _WRITTEN.get(key, f"^{key.removeprefix('ctrl+')}" if key.startswith("ctrl+") else key)


def with_keys(chosen: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the keys of every command, those chosen by the user in place of ours.

    Raises `ValueError` for a command that is none, or a key that two commands of a screen would share.
    """
    for name in chosen:
        if name not in BY_ID:
            raise ValueError(f"unknown command {name!r}; commands are {', '.join(BY_ID)}")
    keys = {each.id: chosen.get(each.id, each.keys) for each in COMMANDS}
    for screen in (*SCREEN_BY_ID, JOB):
        _reject_clash(screen, known_on(screen), keys)
    return keys


def _reject_clash(screen: str, commands: Iterable[ConsoleCommand], keys: Mapping[str, Sequence[str]]) -> None:
    taken: dict[str, str] = {}
    for command in commands:
        for key in keys[command.id]:
            # Trying again is possible only while no action is, so that the two may share a key.
            if taken.setdefault(key, command.id) != command.id and command.id != "reconnect":
                raise ValueError(f"key {key!r} is assigned to both {taken[key]} and {command.id} on screen {screen}")
