"""The words of the frame around a screen: the facts of the connection line, and the text of the banner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gw_core.front_ends import counted
from gw_tui.rules.connection_state import ConnectionPhase
from gw_tui.text import formatting, sanitize

if TYPE_CHECKING:
    from gw_tui.data.playback import Playback
    from gw_tui.state import ConsoleState
    from gw_tui.widgets.connection_line import Fact

SIGNS: Final = {
    ConnectionPhase.CONNECTING: ("… CONNECTING", "quiet"),
    ConnectionPhase.LIVE: ("✓ LIVE", "foreground"),
    ConnectionPhase.STALE: ("! STALE", "warning"),
    ConnectionPhase.DOWN: ("▲ DOWN", "error"),
    ConnectionPhase.RETRYING: ("▲ RETRYING", "error"),
    ConnectionPhase.DENIED: ("▲ DENIED", "error"),
    ConnectionPhase.NO_SCHEMA: ("▲ NO SCHEMA", "error"),
}


def facts(state: ConsoleState, phase: ConnectionPhase, waiting_changes: int) -> Iterator[Fact]:
    """Yield what the connection line shows."""
    playback, options, target = state.source.playback, state.options, state.source.info
    word, role = SIGNS[phase] if playback is None else (_replay(playback), "warning")
    yield 0, word, f"bold ${role}"
    if badge := options.badge:
        # Production stands out; without colours it is reversed like the others.
        is_coloured = options.is_production and options.colour
        style = "bold $background on $error" if is_coloured else "bold reverse"
        yield 1, f" {sanitize.line(badge, 20).upper()} ", style
    if state.frozen_at is not None:
        yield 2, f"FROZEN {_minutes(state.clock() - state.frozen_at)}", "bold $warning"
    yield 3, sanitize.line(_where(state), 60), "bold"
    yield 4, *(("READ-ONLY", "bold $warning") if state.is_read_only else ("READ-WRITE", "bold"))
    if waiting_changes:
        yield 5, f"{counted(waiting_changes, 'change')} (.)", "$warning"
    yield 8, f"schema {sanitize.line(target.schema, 40)}", "$quiet"
    cost = "" if state.cost is None else f" · {max(1, round(state.cost * 1_000))} ms"
    unfocused = "unfocused: every " if state.is_blurred else ""
    yield 7, f"{unfocused}{state.pace:g}s{cost}", "$quiet"
    if not state.is_listening:
        yield 9, "polling only", "$quiet"
    if state.snapshot is not None:
        yield 6, formatting.clock(state.now), "$quiet"


def banner(state: ConsoleState, phase: ConnectionPhase) -> str:
    """Return the description of a connection problem and what happens next; empty without a problem."""
    words = sanitize.line(state.connection.reason, 300)
    now = state.clock()
    attempt = f"attempt {state.connection.attempt + 1}"
    match phase:
        case ConnectionPhase.DOWN:
            left = state.connection.next_try_in(now) or 0.0
            return f"▲ DOWN: {words}. Retrying in {left:.0f} s ({attempt}); r retries now."
        case ConnectionPhase.RETRYING:
            return f"▲ RETRYING ({attempt}): {words}"
        case ConnectionPhase.DENIED:
            again = state.connection.next_try_in(now)
            what = "Fix this, then press r" if again is None else f"Retrying in {again:.0f} s"
            return f"▲ DENIED: {words}. {what}."
        case ConnectionPhase.NO_SCHEMA:
            return f"▲ NO SCHEMA: {words}"
        case ConnectionPhase.STALE:
            why = f": {sanitize.line(state.late_because, 200)}" if state.late_because else ""
            return f"! STALE: no answer for {state.connection.unanswered_for(now) or 0.0:.0f} s{why}."
        case _:
            return _warning(state)


def _warning(state: ConsoleState) -> str:
    if state.snapshot is not None and state.snapshot.schema.rows_hidden:
        user = sanitize.line(state.snapshot.server.user, 60)
        return f"! Row-level security hides jobs from {user}: counts are incomplete. Run gw doctor."
    return ""


def _where(state: ConsoleState) -> str:
    if state.snapshot is None:
        return state.source.info.where
    server = state.snapshot.server
    return f"{server.user}@{server.host or 'local'}/{server.database}"


def _replay(playback: Playback) -> str:
    """Return where a playback is: `REPLAY 00:34 of 05:12`."""
    phase = " ENDED" if playback.is_over else " PAUSED" if playback.is_paused else ""
    return f"REPLAY{phase} {_minutes(playback.position)} of {_minutes(playback.length)}"


def _minutes(seconds: float) -> str:
    """Return a duration as `05:12`."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
