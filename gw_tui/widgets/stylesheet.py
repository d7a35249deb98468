"""A stylesheet that reads a rule once: the framework's own reads all of them whenever a screen is shown first."""

from __future__ import annotations

from typing import Final

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

KEPT: Final = 512
"""Pieces of style sheets, of which each kind of widget has one; of fewer than there are none would ever be found."""


class CachedStylesheet(Stylesheet):
    """Keeps what it has read until the colours change.

    Reading everything again takes long enough to be noticeable while a key is held down.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache = LRUCache(KEPT)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take other colours, if they are others."""
        if variables != self._variables:
            super().set_variables(variables)

    def reparse(self) -> None:
        """Read what has not been read yet."""
        self.parse()
