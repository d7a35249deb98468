"""What an operator can do, and the record of what was done."""

from gw_tui.actions.action import GONE as GONE, Action as Action, Result as Result, SkippedItem as SkippedItem
from gw_tui.actions.command_preview import gw_command as gw_command
from gw_tui.actions.jobs import (
    Add as Add,
    Cancel as Cancel,
    Complete as Complete,
    Fail as Fail,
    FindByKey as FindByKey,
    RemoveByKey as RemoveByKey,
    Reschedule as Reschedule,
    Restore as Restore,
    Retry as Retry,
)
from gw_tui.actions.maintenance import (
    MAX_CLEANED as MAX_CLEANED,
    Cleanup as Cleanup,
    CleanupSelected as CleanupSelected,
    CountExactly as CountExactly,
    EndSession as EndSession,
    Forget as Forget,
    RunDoctor as RunDoctor,
    Sweep as Sweep,
    Unlock as Unlock,
)
from gw_tui.actions.pauses import FindPause as FindPause, Pause as Pause, Resume as Resume, SetLimit as SetLimit
