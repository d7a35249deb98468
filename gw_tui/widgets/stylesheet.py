"""A stylesheet that reads and matches a rule once: the framework's own does both whenever a screen is shown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from textual.app import App
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RenderStyles, RulesMap, Styles
from textual.css.stylesheet import CssSource, Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

KEPT: Final = 512
"""Pieces of style sheets, of which each kind of widget has one; of fewer than there are none would ever be found."""

THEMES_KEPT: Final = 4

SHEETS_KEPT: Final = 256
"""Each kind of widget that is shown first makes another sheet."""

PATHS_KEPT: Final = 1024

Variables = frozenset[tuple[str, str]]
Sources = tuple[tuple[tuple[str, str], CssSource], ...]
Path = tuple[tuple[object, ...], ...]
"""What selectors read of a node and of those that contain it."""


@lru_cache(maxsize=THEMES_KEPT)
def known_rules(variables: Variables) -> LRUCache[tuple[object, ...], list[RuleSet]]:
    """Return the rules that consoles of this process have read with these colours."""
    return LRUCache(KEPT)


class Match(NamedTuple):
    """What applies to a node and to the parts that it draws itself."""

    rules: RulesMap
    parts: Mapping[str, RulesMap]
    has_hover_style: bool


@lru_cache(maxsize=SHEETS_KEPT)
def known_matches(variables: Variables, sources: Sources) -> LRUCache[Path, Match]:
    """Return what consoles of this process have matched with these rules."""
    return LRUCache(PATHS_KEPT)


class PartStyles(dict[str, RenderStyles]):
    """The styles of a widget's parts. Each is made when it is read first; most never are."""

    def __init__(self, node: DOMNode, rules: Mapping[str, RulesMap]) -> None:
        super().__init__()
        self.rules = rules
        self._node = node

    def __contains__(self, name: object) -> bool:
        return name in self.rules

    def __missing__(self, name: str) -> RenderStyles:
        part = DOMNode(classes=name)
        part._attach(self._node)
        part.styles.base.merge_rules(self.rules[name])
        self[name] = part.styles
        return part.styles


class CachedStylesheet(Stylesheet):
    """Reads each rule once for each theme, also when the next console of the process shows another database.

    Which rules apply is found once for all nodes of which selectors read the same.
    Doing everything again takes long enough to be noticeable while a key is held down.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._share_rules()

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take other colours, if they are others."""
        if variables == self._variables:
            return
        self._parse_cache = LRUCache(1)  # the base class clears it
        super().set_variables(variables)
        self._share_rules()

    def _share_rules(self) -> None:
        self._colours = frozenset(self._variables.items())
        self._parse_cache = known_rules(self._colours)

    def reparse(self) -> None:
        """Read what has not been read yet."""
        self.parse()

    def parse(self) -> None:
        super().parse()
        self._matches = known_matches(self._colours, tuple(self.source.items()))

    def apply(
        self, node: DOMNode, *, animate: bool = False, cache: dict[tuple[object, ...], RulesMap] | None = None
    ) -> None:
        """Apply the rules to a node, which are known if they were applied to one of the same path."""
        if self._require_parse:
            self.parse()
        path = path_of(node)
        match = self._matches.get(path)
        if match is None:
            self._apply_first(node, path, animate=animate)
            return
        node._has_hover_style = match.has_hover_style
        node._has_focus_within = node._has_order_style = node._has_odd_or_even = False
        if match.rules:
            self.replace_rules(node, match.rules, animate=animate)
        self._style_parts(node, match.parts)

    def _apply_first(self, node: DOMNode, path: Path, *, animate: bool) -> None:
        found: dict[tuple[object, ...], RulesMap] = {}
        super().apply(node, animate=animate, cache=found)
        # Such rules depend on more than the path.
        if node._has_focus_within or node._has_order_style or node._has_odd_or_even:
            return
        parts = {}
        for name in node._get_component_classes():
            part = self._matches.get((*path, seen_of_part(name)))
            if part is None:
                return
            parts[name] = part.rules
        rules = next(iter(found.values()), RulesMap())
        self._matches[path] = Match(as_set(rules), parts, node._has_hover_style)

    def _style_parts(self, node: DOMNode, rules: Mapping[str, RulesMap]) -> None:
        shown = node._component_styles
        if isinstance(shown, PartStyles) and (shown.rules is rules or shown.rules == rules):
            return
        if rules or shown:
            node._component_styles = PartStyles(node, rules)
            node.refresh()

    def _process_component_classes(self, node: DOMNode) -> None:
        node._component_styles = dict(node._component_styles)
        super()._process_component_classes(node)

    @classmethod
    def replace_rules(cls, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
        """Replace the rules of a node if they are others; setting each again takes longer than finding them."""
        if node.styles.base._rules != rules:
            super().replace_rules(node, rules, animate=animate)
        else:
            # What a node inherits may still be different.
            node.notify_style_update()


def as_set(rules: RulesMap) -> RulesMap:
    """Return the rules as styles keep them; some values are words at first."""
    styles = Styles()
    for name, value in rules.items():
        setattr(styles, name, value)
    return styles.get_rules()


def path_of(node: DOMNode) -> Path:
    """Return what selectors read of a node and of those that contain it."""
    return tuple(map(seen_of, node.css_path_nodes))


def seen_of(node: DOMNode) -> tuple[object, ...]:
    own = type(node), node._id, frozenset(node._classes)
    if isinstance(node, Widget):
        return *own, node._pseudo_classes_cache_key, node.allow_focus()
    if isinstance(node, App):
        theme = node.current_theme
        return *own, node.app_focus, theme.dark, node.is_inline, node.native_ansi_color, node.no_color
    return own


def seen_of_part(name: str) -> tuple[object, ...]:
    return DOMNode, None, frozenset((name,))
