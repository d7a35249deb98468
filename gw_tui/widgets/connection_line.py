"""The two lines at the top of every screen, and the banner below them when the database does not answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from gw_tui.data.playback import Playback
from gw_tui.rules.commands import SCREENS
from gw_tui.rules.connection_state import ConnectionPhase
from gw_tui.rules.options import is_production
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.line import Line

NAME: Final = " gw "
SIGNS: Final = {
    ConnectionPhase.CONNECTING: ("… CONNECTING", "quiet"),
    ConnectionPhase.LIVE: ("✓ LIVE", "foreground"),
    ConnectionPhase.STALE: ("! STALE", "warning"),
    ConnectionPhase.DOWN: ("▲ DOWN", "error"),
    ConnectionPhase.RETRYING: ("▲ RETRYING", "error"),
    ConnectionPhase.DENIED: ("▲ DENIED", "error"),
    ConnectionPhase.NO_SCHEMA: ("▲ NO SCHEMA", "error"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus:
    """What the connection line shows."""

    phase: ConnectionPhase
    target: str
    schema: str
    mode: str = ""
    environment: str = ""
    period: float = 1.0
    cost: float | None = None
    clock: str = ""
    paused_for: float | None = None
    is_listening: bool = True
    waiting: int = 0
    is_unfocused: bool = False
    """Refreshes are ten times less frequent because the terminal does not have the focus."""
    replay: str = ""
    """Where the playback of a recording is; empty for a live queue."""


class TabBar(Line):
    """The screens with their keys, and with their long titles where they fit; a click goes there."""

    def __init__(self, active: str) -> None:
        super().__init__()
        self._active = active

    def content_for(self, width: int) -> Content:
        roomy = sum(len(place.title) + 4 for place in SCREENS)
        is_short = width < roomy - len(SCREENS)
        has_room = width >= sum(len(place.short) + 4 for place in SCREENS) if is_short else width >= roomy
        end = " " if has_room else ""
        parts: list[Content | str] = [Content.styled(NAME, "bold")] if width >= roomy + len(NAME) else []
        for place in SCREENS:
            title = f" {place.key} {place.short if is_short else place.title}{end}"
            style = "bold reverse" if place.id == self._active else "$quiet"
            link = Style.from_meta({"@click": f"app.go('{place.id}')"})
            parts.append(Content.styled(title, style).stylize(link))
        return Content("").join(parts)


class ConnectionLine(Line):
    """How things stand: state, target, schema, mode, pace and the server's clock."""

    def __init__(self) -> None:
        super().__init__()
        self._status: ConnectionStatus | None = None

    def show(self, status: ConnectionStatus) -> None:
        self._status = status
        self.draw()

    def content_for(self, width: int) -> Content:
        return Content("") if self._status is None else _line(self._status, width)


def _line(status: ConnectionStatus, width: int) -> Content:
    word, role = SIGNS[status.phase]
    if status.replay:
        word, role = status.replay, "warning"
    parts: list[tuple[int, str, str]] = [(0, word, f"bold ${role}")]
    if status.environment:
        parts.append((1, f" {sanitize.line(status.environment, 20).upper()} ", _badge(status.environment)))
    if status.paused_for is not None:
        parts.append((2, f"PAUSED {_minutes(status.paused_for)}", "bold $warning"))
    parts.append((3, sanitize.line(status.target, 60), "bold"))
    if status.mode:
        parts.append((4, status.mode, "bold" if status.mode == "READ-WRITE" else "bold $warning"))
    if status.waiting:
        parts.append((5, f"{formatting.counted(status.waiting, 'change')} (.)", "$warning"))
    parts.append((8, f"schema {sanitize.line(status.schema, 40)}", "$quiet"))
    cost = "" if status.cost is None else f" · {max(1, round(status.cost * 1_000))} ms"
    unfocused = "unfocused: every " if status.is_unfocused else ""
    parts.append((7, f"{unfocused}{status.period:g}s{cost}", "$quiet"))
    if not status.is_listening:
        parts.append((9, "polling only", "$quiet"))
    if status.clock:
        parts.append((6, status.clock, "$quiet"))
    return Content("  ").join(Content.styled(text, style) for _, text, style in _that_fit(parts, width - 2))


def _badge(environment: str) -> str:
    """Return the colours of an environment's badge: production stands out."""
    return "bold $background on $error" if is_production(environment) else "bold reverse"


def replay_words(playback: Playback) -> str:
    """Return where a playback is: `REPLAY 00:34 of 05:12`."""
    state = " ENDED" if playback.is_over else " PAUSED" if playback.is_paused else ""
    return f"REPLAY{state} {_minutes(playback.position)} of {_minutes(playback.length)}"


def _that_fit(parts: list[tuple[int, str, str]], width: int) -> Iterable[tuple[int, str, str]]:
    kept = list(parts)
    while len(kept) > 1 and sum(len(text) + 2 for _, text, _ in kept) - 2 > width:
        kept.remove(max(kept))
    return kept


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


class Banner(Static):
    """Describes a connection problem and what happens next; empty without one."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._words = ""

    def show(self, words: str) -> None:
        if words == self._words:
            return
        self._words = words
        self.set_class(bool(words), "-shown")
        self.set_class(words.startswith(symbols.WARNING.sign), "-warns")
        self.update(Content(words))
