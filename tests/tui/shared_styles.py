"""Let all consoles of a process share parsed styles and the rules of a widget, which take a third of a test's time.

Which rules a widget gets depends on the types, ids, classes and pseudo-classes of the widget and all that it is in,
unless a rule also asks for its siblings or for the focus within it. The framework finds them again for each widget.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What the framework notes about a widget when it applies styles to it."""


def share_styles(patch: pytest.MonkeyPatch) -> None:
    """Share them among the consoles that begin from now on."""
    patch.setattr("textual.app.Stylesheet", SharedStylesheet)
    patch.setattr("textual.css.stylesheet.Stylesheet", SharedStylesheet)


class SharedStylesheet(Stylesheet):
    """The styles of a console."""

    parsed: ClassVar[dict[Any, Any]] = {}
    """By theme and source."""
    sheets: ClassVar[dict[Any, tuple[list[Any], dict[str, list[Any]]]]] = {}
    """All rules by theme and sources."""
    orders: ClassVar[dict[int, dict[Any, int]]] = {}
    """The place of each rule among all rules."""
    candidates: ClassVar[dict[Any, int]] = {}
    numbers: ClassVar[dict[Any, int]] = {}
    found: ClassVar[dict[tuple[int, int], tuple[tuple[bool, ...], Any]]] = {}
    """By the rules that may be those of a widget, and its place."""
    last: tuple[Any, int] = None, 0
    """The widget that got its rules last, and its place."""

    def parse(self) -> None:
        """Parse each source once for a theme; each screen that opens parses all of them."""
        theme = frozenset(self._variables.items())
        sources = (theme, tuple(self.source.items()))
        if sources not in self.sheets:
            self._parse_cache = self.parsed.setdefault(theme, {})
            super().parse()
            self.sheets[sources] = (self._rules, self.rules_map)
            self.orders[id(self._rules)] = {rule: place for place, rule in enumerate(self._rules)}
        self._rules, self._rules_map = self.sheets[sources]
        self._require_parse = False

    def apply(self, node: Any, *, animate: bool = False, cache: Any = None) -> None:
        """Apply the rules that were found for such a widget before, unless it has them."""
        rules, place = id(self.rules), self._place(node)
        if vars(node).get("applied") == (rules, place):
            node.notify_style_update()
            return
        key = (self._candidates_of(node), place)
        if key not in self.found:
            new: dict[Any, Any] = {}
            super().apply(node, animate=animate, cache=new)
            if new:
                self.found[key] = (tuple(getattr(node, name) for name in FLAGS), *new.values())
            vars(node)["applied"] = (rules, place) if new else None
            return
        flags, found = self.found[key]
        for name, value in zip(FLAGS, flags, strict=True):
            setattr(node, name, value)
        self.last = node, place
        self.replace_rules(node, found, animate=animate)
        self._process_component_classes(node)
        vars(node)["applied"] = (rules, place)

    def _candidates_of(self, node: Any) -> int:
        """Return a number for the rules that may be those of a widget, judged by what it is, and not by its place."""
        kind = (id(self.rules), type(node), node.id, node.classes)
        if kind not in self.candidates:
            order, rules = self.orders[id(self.rules)], self.rules_map
            found = {rule for name in rules.keys() & node._selector_names for rule in rules[name]}
            self.candidates[kind] = self._number(tuple(sorted(found, key=order.__getitem__)))
        return self.candidates[kind]

    def _place(self, node: Any) -> int:
        """Return a number for what else decides which rules a widget gets."""
        if node.parent is None:
            above = 0
        elif type(node) is DOMNode and node.parent is self.last[0]:  # a part of a widget that got its rules just now
            above = self.last[1]
        else:
            above = self._place(node.parent)
        state: Any = None
        if isinstance(node, Widget):
            state = (node.mouse_hover, node.has_focus, node.disabled, node.can_focus)
        elif isinstance(node, App):
            state = frozenset(node.get_pseudo_classes())
        return self._number((type(node), node.id, node.classes, state, above))

    def _number(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers) + 1)
