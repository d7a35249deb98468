"""Text of a fixed height that depends on the width."""

from __future__ import annotations

from rich.style import Style
from textual.content import Content
from textual.widgets import Static


class Line(Static):
    """Shows the `content` of a subclass, never as markup; draws it again only when it is another one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._drawn = Content("")

    @property
    def link_style(self) -> Style:
        """Nothing: what can be clicked keeps the colours of its own."""
        return Style.null()

    def content_for(self, width: int) -> Content:
        """Return what to show in this many columns."""
        raise NotImplementedError

    def draw(self) -> None:
        width = self.size.width if self.is_attached else 0
        if width and not (content := self.content_for(width)).is_same(self._drawn):
            self._drawn = content
            self.update(content, layout=False)

    def on_resize(self) -> None:
        self.draw()
