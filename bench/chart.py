"""A picture of ratios: one bar for each comparison on a logarithmic scale, with the spread of the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log2
from typing import Final

LOWEST: Final = 0.5
HIGHEST: Final = 16.0
"""A bar that is longer ends at the edge; its label has the figure."""
TICKS: Final = (0.5, 1, 2, 4, 8, 16)
LABELS: Final = 370
BARS: Final = 420
FIGURES: Final = 200
ROW: Final = 30
TOP: Final = 56
BETTER: Final = "#2a7f62"
WORSE: Final = "#b5533c"
INK: Final = "#333333"


@dataclass(frozen=True, slots=True)
class Bar:
    """One comparison: how many times better gw is, in the middle and at the ends of all rounds."""

    label: str
    ratio: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The ratio and its spread."""
        if self.ratio >= 100:
            return "more than 100 x"
        return f"{self.ratio:.2f} x ({self.low:.2f} - {self.high:.2f})"


def chart(bars: Sequence[Bar], title: str) -> str:
    """Return the picture as SVG; it has its own background, so it reads in light and dark pages."""
    width, height = LABELS + BARS + FIGURES, TOP + ROW * len(bars) + 16
    drawn = (line for number, bar in enumerate(bars) for line in _bar(bar, TOP + ROW * number))
    return _svg(width, height, title, [*_scale(height), *drawn], font_size=14)


def _svg(width: int, height: int, title: str, lines: Sequence[str], *, font_size: int) -> str:
    """Return a picture with a title on a background of its own."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
        f'     aria-label="{escape(title)}" font-family="sans-serif" font-size="{font_size}" fill="{INK}">',
        f'  <rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'  <text x="16" y="24" font-weight="bold">{escape(title)}</text>',
    )
    return "\n".join([*head, *lines, "</svg>"]) + "\n"


def _scale(height: int) -> Iterator[str]:
    for tick in TICKS:
        x = _x(tick)
        stroke = INK if tick == 1 else "#dddddd"
        yield f'  <line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 12}" stroke="{stroke}"/>'
        yield f'  <text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle" font-size="12">{tick:g} x</text>'


def _bar(bar: Bar, y: int) -> Iterator[str]:
    left, right = sorted((_x(1), _x(bar.ratio)))
    color = BETTER if bar.ratio >= 1 else WORSE
    middle = y + ROW / 2
    yield f'  <text x="16" y="{middle + 5:g}">{escape(bar.label)}</text>'
    yield f'  <rect x="{left:.1f}" y="{y + 6}" width="{max(1, right - left):.1f}" height="{ROW - 12}" fill="{color}"/>'
    yield (
        f'  <line x1="{_x(bar.low):.1f}" x2="{_x(bar.high):.1f}" y1="{middle:g}" y2="{middle:g}"'
        f' stroke="{INK}" stroke-width="2"/>'
    )
    yield f'  <text x="{LABELS + BARS + 16}" y="{middle + 5:g}">{bar.text}</text>'


def _x(ratio: float) -> float:
    inside = min(HIGHEST, max(LOWEST, ratio))
    return LABELS + BARS * log2(inside / LOWEST) / log2(HIGHEST / LOWEST)


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over time with one unit; each has a value for every period."""

    title: str
    lines: Mapping[str, Sequence[float]]


PANEL: Final = 150
COLORS: Final = (BETTER, WORSE)


def panels(title: str, drawn: Sequence[Panel], *, minutes: float, parts: Sequence[tuple[str, float, float]]) -> str:
    """Return panels below each other as SVG, over the same time.

    Each of `parts` has a name, a begin and an end, as shares of that time.
    """
    width, left, right = 900, 70, 130
    plot = width - left - right
    height = TOP + (PANEL + 34) * len(drawn) + 16
    out: list[str] = []
    for name, begin, end in parts:
        x = left + begin * plot
        out.append(
            f'  <rect x="{x:.1f}" y="{TOP - 8}" width="{(end - begin) * plot:.1f}" height="{height - TOP - 14}" '
            'fill="#f0f0f0"/>'
        )
        out.append(f'  <text x="{x + 4:.1f}" y="{TOP + 4}" font-size="11">{escape(name)}</text>')
    for number, panel in enumerate(drawn):
        top = TOP + 30 + (PANEL + 34) * number
        most = max((max(values) for values in panel.lines.values()), default=0) or 1
        out.append(f'  <text x="{left}" y="{top - 6}">{escape(panel.title)}</text>')
        for value in (0, most):
            y = top + PANEL - PANEL * value / most
            out.append(f'  <line x1="{left}" x2="{left + plot}" y1="{y:.1f}" y2="{y:.1f}" stroke="#cccccc"/>')
            label = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            out.append(f'  <text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{label}</text>')
        for color, (name, values) in zip(COLORS, panel.lines.items(), strict=False):
            step = plot / max(len(values) - 1, 1)
            points = " ".join(
                f"{left + step * each:.1f},{top + PANEL - PANEL * value / most:.1f}"
                for each, value in enumerate(values)
            )
            out.append(f'  <polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
            y = top + PANEL - PANEL * values[-1] / most
            out.append(f'  <text x="{left + plot + 6}" y="{y + 4:.1f}" fill="{color}">{escape(name)}</text>')
    out.append(
        f'  <text x="{left + plot}" y="{height - 6}" text-anchor="end" font-size="11">{minutes:g} minutes</text>'
    )
    return _svg(width, height, title, out, font_size=13)
