"""A stylesheet that reads a rule once: the framework's own reads all of them whenever a screen is shown first."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

KEPT: Final = 512
"""Pieces of style sheets, of which each kind of widget has one; of fewer than there are none would ever be found."""

THEMES_KEPT: Final = 4

Variables = frozenset[tuple[str, str]]


@lru_cache(maxsize=THEMES_KEPT)
def known_rules(variables: Variables) -> LRUCache[tuple[object, ...], list[RuleSet]]:
    """Return the rules that consoles of this process have read with these colours."""
    return LRUCache(KEPT)


class CachedStylesheet(Stylesheet):
    """Reads each rule once for each theme, also when the next console of the process shows another database.

    Reading everything again takes long enough to be noticeable while a key is held down.
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
        self._parse_cache = known_rules(frozenset(self._variables.items()))

    def reparse(self) -> None:
        """Read what has not been read yet."""
        self.parse()
