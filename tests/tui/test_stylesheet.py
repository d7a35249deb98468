"""Rules are read and matched once, and again when the colours change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from console_fixture import Console, run
from textual.css import stylesheet
from textual.dom import DOMNode

from gw_tui.widgets.stylesheet import known_rules


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each piece of a style sheet was read."""
    known_rules.cache_clear()  # consoles of other tests have filled it
    found: Counter[str] = Counter()
    usual = stylesheet.parse

    def parse(scope: str, css: str, *more: Any, **others: Any) -> Iterator[Any]:
        found[css] += 1
        return usual(scope, css, *more, **others)

    monkeypatch.setattr(stylesheet, "parse", parse)
    return found


def test_no_rule_is_read_twice_however_many_screens_are_shown(parsed: Counter[str]) -> None:
    async def scenario(console: Console) -> None:
        console.app.use_theme("gw-light")
        await console.pilot.pause()
        parsed.clear()
        for screen in console.app.MODES:
            console.app.visit(screen)
            await console.reach(screen)
        await console.pilot.pause()
        assert parsed
        # The framework ranks rules of base classes by distance, and lists that turn pages have one class more between.
        assert {css.split()[0].rstrip("{") for css, times in parsed.items() if times > 1} <= {"Screen", "Widget"}
        assert max(parsed.values()) <= 2

    run(scenario, screen="overview")


def test_the_next_console_of_the_process_reads_no_rule(parsed: Counter[str]) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)

    run(scenario)
    assert parsed
    parsed.clear()
    run(scenario)
    assert not parsed


def test_another_theme_is_seen_immediately(parsed: Counter[str]) -> None:
    async def scenario(console: Console) -> None:
        for theme in ("gw-light", "gw-contrast"):
            console.app.use_theme(theme)
            await console.pilot.pause()
            ground = console.app.screen.styles.background.hex
            assert ground == console.app.available_themes[theme].background

    run(scenario, screen="overview")


def test_every_node_and_part_has_the_styles_that_the_framework_finds() -> None:
    async def scenario(console: Console) -> None:
        for screen in console.app.MODES:
            console.app.visit(screen)
            await console.reach(screen)
            for _ in range(2):
                compare(console)
                await console.press("tab")
                await console.pilot.pause()
        await console.press("ctrl+p")
        await console.reach("CommandPalette")
        compare(console)

    for _ in range(2):  # the second console finds what the first has matched
        run(scenario, screen="overview")


def compare(console: Console) -> None:
    """Apply the framework's own stylesheet to every node of the screen in front; nothing may change."""
    plain = stylesheet.Stylesheet(variables=console.app.get_css_variables())
    plain.source = console.app.stylesheet.source.copy()
    plain.parse()
    for node in console.app.screen.walk_children(with_self=True):
        before = styles_of(node)
        plain.apply(node)
        assert styles_of(node) == before, node


def styles_of(node: DOMNode) -> tuple[Any, dict[str, Any]]:
    names = {name for kind in type(node).__mro__ for name in getattr(kind, "COMPONENT_CLASSES", ())}
    parts = {name: dict(node.get_component_styles(name).get_rules()) for name in names}
    return dict(node.styles.base.get_rules()), parts
