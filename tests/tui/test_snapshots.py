"""Every screen and the main dialogs look as they did; three screens in all our themes and at four sizes.

Others are compared in one theme and size, nightly in all themes.

When one of these fails, recreate them and review the diff: `GW_RENEW=1 pytest tests/tui/test_snapshots.py`.
A file has the screen as text, and below it a letter for each cell that stands for its paint: small enough to read in a
diff. The usual plugin is not used: it needs an older pytest, and stores each theme and size as an image of tens of
kilobytes, in which every release of the framework changes every line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from console_fixture import Console, run
from rendering import RenderedScreen, cells, first_difference, in_first_theme, painted, read, written
from scenarios import LEAST, SCENES, Scene, a_queue
from support.profiles import IS_NIGHTLY, PROFILE
from textual.theme import Theme
from textual.widgets import Input, TextArea

from gw_tui.widgets.themes import THEMES

KEPT = Path(__file__).parent / "snapshots"
MAX_TRIES = 10
COLOURLESS = [scene for scene in SCENES if scene.name in ("overview", "jobs", "question", "commands", "down")]


async def settled(console: Console) -> None:
    """Wait until the screen changes no more."""
    for field in (*console.app.screen.query(Input), *console.app.screen.query(TextArea)):
        field.cursor_blink = False
    before: list[str] = []
    while before != (before := [repr(strip) for strip in console.strips]):
        await console.pilot.pause()


async def seen(console: Console, wanted: Sequence[str]) -> RenderedScreen:
    """Return what is on the screen in these themes."""
    variables = {theme: colours_of(console.app.available_themes[theme]) for theme in wanted}
    # An answer may arrive between two themes: then all of them are drawn again.
    for _ in range(MAX_TRIES):
        found = {}
        for theme in wanted:
            console.app.theme = theme
            await settled(console)
            found[theme] = cells(console.app)
        if len({str([[text for text, _ in line] for line in each]) for each in found.values()}) == 1:
            break
    return painted(variables, found)


def colours_of(theme: Theme) -> dict[str, str]:
    own = {name: getattr(theme, name) for name in ("foreground", "background", "panel", "primary", "error", "accent")}
    return {**own, "warning": str(theme.warning), **theme.variables}


def compare(
    name: str,
    screen: RenderedScreen,
    size: tuple[int, int],
    *,
    with_paint: bool = True,
    theme: Mapping[str, str] | None = None,
) -> None:
    """Compare a screen with the one that was kept, or keep it; `theme` has the colours if only one was seen."""
    file = KEPT / f"{name}-{size[0]}x{size[1]}.txt"
    if os.environ.get("GW_RENEW"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(written(screen, with_paint=with_paint), "utf-8")
    kept = read(file.read_text("utf-8"), size[0])
    if theme is not None:
        kept, screen = in_first_theme(kept, theme), in_first_theme(screen, theme)
    difference = first_difference(kept, screen)
    assert difference is None, f"{file.name}, {difference}"


def sizes_of(scene: Scene) -> tuple[tuple[int, int], ...]:
    """Return the first size, in CI also the smallest; all of them nightly, and when the files are renewed."""
    if IS_NIGHTLY or os.environ.get("GW_RENEW"):
        return scene.sizes
    return scene.sizes[:1] if PROFILE == "dev" else (scene.sizes[0], scene.sizes[-1])


@pytest.fixture(autouse=True)
def _timeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time that passes change a screen."""
    # A page that is rebuilt while it is drawn in another theme has another status line.
    monkeypatch.setattr("gw_tui.screens.jobs.REBUILD_INTERVAL", 3_600.0)
    # Rows that hold their places after a movement of the cursor are arranged with the next answer after this time.
    monkeypatch.setattr("gw_tui.widgets.keyed_table.SETTLING", 3_600.0)


@pytest.mark.once
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_it_has_not_changed(scene: Scene) -> None:

    async def scenario(console: Console) -> None:
        await scene.prepare(console)
        await console.answered()
        themes = [theme.name for theme in THEMES]
        is_whole = len(scene.sizes) > 1 or IS_NIGHTLY or "GW_RENEW" in os.environ
        for size in sizes_of(scene):
            await console.pilot.resize_terminal(*size)
            with_paint = size != LEAST
            screen = await seen(console, themes if with_paint and is_whole else themes[:1])
            only = None if is_whole else colours_of(THEMES[0])
            compare(scene.name, screen, size, with_paint=with_paint, theme=only)

    run(scenario, source=a_queue(), screen=scene.screen, is_drawn=True, **scene.options)


@pytest.mark.once
@pytest.mark.parametrize("scene", COLOURLESS, ids=lambda scene: scene.name)
def test_it_has_not_changed_without_colours_and_in_ascii(scene: Scene) -> None:
    async def scenario(console: Console) -> None:
        await scene.prepare(console)
        await console.answered()
        compare(f"{scene.name}-plain", await seen(console, [THEMES[0].name]), (80, 24))

    options = {**scene.options, "colour": False, "ascii": True}
    run(scenario, source=a_queue(), screen=scene.screen, is_drawn=True, **options)


def test_every_file_is_of_a_scene() -> None:
    wanted = {f"{scene.name}-{size[0]}x{size[1]}.txt" for scene in SCENES for size in scene.sizes}
    wanted |= {f"{scene.name}-plain-80x24.txt" for scene in COLOURLESS}

    assert {path.name for path in KEPT.iterdir()} == wanted


# -- how looks are compared --------------------------------------------------------------------------------------------


def a_screen(*lines: str, paint: str = "foreground on panel") -> RenderedScreen:
    return RenderedScreen([[(character, paint) for character in line] for line in lines])


def test_a_snapshot_is_read_as_it_was_written() -> None:
    screen = RenderedScreen(
        [[("a", "quiet on panel"), ("b", "error on panel bold"), (" ", "panel")], [(" ", "panel")] * 3]
    )

    assert read(written(screen), 3) == screen


def test_a_screen_without_colours_is_like_any() -> None:
    screen = a_screen("ab", "c ")

    assert first_difference(read(written(screen, with_paint=False), 2), screen) is None


@pytest.mark.parametrize(
    ("now", "words"),
    [
        pytest.param(a_screen("abc", "dxf"), "line 2, column 2: it was 'e'", id="character"),
        pytest.param(
            a_screen("abc", "def", paint="error on panel"), "line 1, column 1: it was 'a' in foreground", id="paint"
        ),
        pytest.param(a_screen("abc"), "it had 2 lines and has 1", id="lines"),
    ],
)
def test_the_first_cell_that_differs_is_named(now: RenderedScreen, words: str) -> None:
    difference = first_difference(a_screen("abc", "def"), now)

    assert difference is not None
    assert words in difference


@pytest.mark.parametrize(("colour", "is_alike"), [("#102030", True), ("#12211F", False), ("#122231", True)])
def test_colours_mixed_a_little_differently_are_alike(colour: str, is_alike: bool) -> None:
    was, now = a_screen("a", paint="#102030 on panel"), a_screen("a", paint=f"{colour} on panel")

    assert (first_difference(was, now) is None) == is_alike
