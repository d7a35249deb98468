"""The template filter of the admin."""

from __future__ import annotations

import re
from typing import Final

from django import template
from django.template.defaultfilters import stringfilter

from gw_core.front_ends import UNSAFE_TEXT

# Line breaks and tabs steer no page: HTML shows them as space, or as they are within <pre>.
_UNSAFE: Final = re.compile(rf"(?!\r?\n|\t){UNSAFE_TEXT}")

register = template.Library()


@register.filter(is_safe=True)
@stringfilter
def visible(text: str) -> str:
    r"""Return the text with escapes such as `\u202e` for the controls and invisible characters in it."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)
