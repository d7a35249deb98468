"""Draw the diagrams of the manual: `python docs/make_diagrams.py` writes docs/diagrams/*.svg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parent / "diagrams"
HEIGHT: Final = 44
# These colors have enough contrast on the light and on the dark page.
BOX, TEXT, LINE = "#2f6f9f", "#ffffff", "#7a8594"


class Box(NamedTuple):
    """A named rectangle with its left upper corner, its width, and lines of text."""

    x: int
    y: int
    width: int
    text: str


class Arrow(NamedTuple):
    """An arrow along points, with a label whose center is at `at`."""

    points: Sequence[tuple[int, int]]
    label: str = ""
    at: tuple[int, int] = (0, 0)


class Diagram(NamedTuple):
    """What one file shows, with a description for readers who do not see it."""

    name: str
    title: str
    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]


STATES: Final = Diagram(
    "states",
    "A job waits, is scheduled, ready or running; it ends completed, or is in backoff, or has failed",
    760,
    300,
    (
        Box(20, 30, 130, "scheduled"),
        Box(20, 130, 130, "waiting"),
        Box(230, 30, 130, "ready"),
        Box(450, 30, 130, "running"),
        Box(230, 200, 130, "backoff"),
        Box(450, 200, 130, "failed"),
        Box(620, 115, 130, "completed"),
    ),
    (
        Arrow(((85, 5), (85, 30))),
        Arrow(((295, 5), (295, 30)), "add", (325, 18)),
        Arrow(((150, 38), (230, 38)), "run_at", (190, 30)),
        Arrow(((85, 205), (85, 174)), "add after others", (85, 222)),
        Arrow(((150, 152), (176, 152), (176, 52), (230, 52)), "they end", (141, 108)),
        Arrow(((360, 44), (450, 44)), "claim", (405, 36)),
        Arrow(((450, 62), (360, 62)), "return", (405, 80)),
        Arrow(((580, 52), (685, 52), (685, 115)), "returns", (640, 44)),
        Arrow(((470, 74), (345, 200)), "raises", (440, 140)),
        Arrow(((530, 74), (530, 200)), "no attempt left", (588, 184)),
        Arrow(((280, 200), (280, 74)), "delay is over", (328, 120)),
        Arrow(((515, 244), (515, 278), (200, 278), (200, 66), (230, 66)), "retry", (360, 270)),
    ),
)
ROAD: Final = Diagram(
    "road",
    "A client adds a row, PostgreSQL notifies the worker, and the worker claims, runs and settles",
    760,
    210,
    (
        Box(20, 80, 130, "your program"),
        Box(250, 80, 150, "PostgreSQL"),
        Box(520, 15, 100, "claim"),
        Box(640, 80, 100, "run"),
        Box(520, 145, 100, "settle"),
    ),
    (
        Arrow(((150, 102), (250, 102)), "1 add", (200, 94)),
        Arrow(((325, 80), (325, 37), (520, 37)), "2 notify, 3 claim", (420, 29)),
        Arrow(((620, 37), (690, 37), (690, 80)), "4 run", (655, 29)),
        Arrow(((690, 124), (690, 167), (620, 167))),
        Arrow(((520, 167), (325, 167), (325, 124)), "5 settle", (420, 185)),
    ),
)
DIAGRAMS: Final = (STATES, ROAD)


def drawn(diagram: Diagram) -> str:
    """Return the diagram as SVG."""
    return "\n".join(_elements(diagram)) + "\n"


def _elements(diagram: Diagram) -> Iterator[str]:
    size = f'width="{diagram.width}" height="{diagram.height}" viewBox="0 0 {diagram.width} {diagram.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14" role="img">'
    yield f"<title>{escape(diagram.title)}</title>"
    yield (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>'
    )
    for arrow in diagram.arrows:
        points = " ".join(f"{x},{y}" for x, y in arrow.points)
        yield f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="2" marker-end="url(#tip)"/>'
        if arrow.label:
            x, y = arrow.at
            yield f'<text x="{x}" y="{y}" text-anchor="middle" fill="{LINE}">{escape(arrow.label)}</text>'
    for box in diagram.boxes:
        yield f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{HEIGHT}" rx="6" fill="{BOX}"/>'
        middle = box.x + box.width // 2
        yield f'<text x="{middle}" y="{box.y + 27}" text-anchor="middle" fill="{TEXT}">{escape(box.text)}</text>'
    yield "</svg>"


def main() -> None:
    """Write every diagram."""
    for diagram in DIAGRAMS:
        (FOLDER / f"{diagram.name}.svg").write_text(drawn(diagram), "utf-8")


if __name__ == "__main__":
    main()
