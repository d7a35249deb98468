"""The colours of the states are distinguishable and readable with every kind of colour vision."""

from __future__ import annotations

from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path

import pytest
from support.project_files import project_files
from textual.theme import Theme

import gw_tui
from gw_tui.text import symbols
from gw_tui.widgets.themes import THEMES

PROGRAM = Path(gw_tui.__file__).parent
MIN_DIFFERENCE = 15.0
MIN_CONTRAST = 4.5

Triple = tuple[float, float, float]

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour: str) -> Triple:
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b))


def seen(colour: str, vision: str) -> Triple:
    found = linear(colour)
    return tuple(min(1.0, max(0.0, sum(m * c for m, c in zip(row, found, strict=True)))) for row in VISIONS[vision])


def lab(rgb: Triple) -> Triple:
    r, g, b = rgb
    x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
    y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def difference(one: Triple, other: Triple) -> float:
    """Return how different two colours in CIELAB look (CIEDE2000)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c_mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    g = 0.5 * (1 - sqrt(c_mean**7 / (c_mean**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = hypot(a1, b1), hypot(a2, b2)
    h1, h2 = (degrees(atan2(b, a)) % 360 if (a or b) else 0.0 for a, b in ((a1, b1), (a2, b2)))
    dh = 0.0 if not c1 * c2 else ((h2 - h1 + 180) % 360) - 180
    dl, dc, big_dh = l2 - l1, c2 - c1, 2 * sqrt(c1 * c2) * sin(radians(dh / 2))
    l_mean, c_mean = (l1 + l2) / 2, (c1 + c2) / 2
    h_mean = h1 + h2 if not c1 * c2 else (h1 + dh / 2) % 360
    t = (
        1
        - 0.17 * cos(radians(h_mean - 30))
        + 0.24 * cos(radians(2 * h_mean))
        + 0.32 * cos(radians(3 * h_mean + 6))
        - 0.20 * cos(radians(4 * h_mean - 63))
    )
    sl = 1 + 0.015 * (l_mean - 50) ** 2 / sqrt(20 + (l_mean - 50) ** 2)
    sc, sh = 1 + 0.045 * c_mean, 1 + 0.015 * c_mean * t
    rotation = -2 * sqrt(c_mean**7 / (c_mean**7 + 25**7)) * sin(radians(60 * exp(-(((h_mean - 275) / 25) ** 2))))
    return sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (big_dh / sh) ** 2 + rotation * (dc / sc) * (big_dh / sh))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG counts it."""
    weights = (0.2126, 0.7152, 0.0722)
    found = [sum(w * c for w, c in zip(weights, linear(each), strict=True)) for each in (one, other)]
    return (max(found) + 0.05) / (min(found) + 0.05)


def colours(theme: Theme) -> dict[str, str]:
    """Return a colour for each state, for warnings and for plain text; `waiting` has that of `scheduled`."""
    assert theme.warning is not None
    assert theme.foreground is not None
    states = {name: theme.variables[f"state-{name}"] for name in symbols.STATES if name != "waiting"}
    return {**states, "warning": theme.warning, "text": theme.foreground}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425, id="blues"),
        pytest.param((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492, id="far apart"),
        pytest.param((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373, id="dark blues"),
        pytest.param((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082, id="near black"),
    ],
)
def test_the_measure_is_the_published_one(one: Triple, other: Triple, expected: float) -> None:
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_meanings_are_distinguishable_with_every_kind_of_colour_vision(theme: Theme, vision: str) -> None:
    found = {
        f"{one}/{other}": difference(lab(seen(a, vision)), lab(seen(b, vision)))
        for (one, a), (other, b) in combinations(colours(theme).items(), 2)
    }

    assert min(found.values()) >= MIN_DIFFERENCE, found


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_everything_written_can_be_read(theme: Theme) -> None:
    assert theme.background is not None
    assert theme.panel is not None
    written = {**colours(theme), "quiet": theme.variables["quiet"]}
    for ground in (theme.background, theme.panel):
        found = {name: contrast(colour, ground) for name, colour in written.items()}
        assert min(found.values()) >= MIN_CONTRAST, (ground, found)
    assert contrast(theme.variables["cursor-text"], theme.variables["cursor"]) >= MIN_CONTRAST
    assert contrast(theme.background, theme.error or "") >= MIN_CONTRAST


def test_an_alarm_is_darker_than_a_warning_on_a_light_ground() -> None:
    light = next(each for each in THEMES if not each.dark)

    assert contrast(light.error or "", light.background or "") > contrast(light.warning or "", light.background or "")


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_theme_names_every_colour(theme: Theme) -> None:
    assert set(theme.variables) == set(THEMES[0].variables)


SYMBOLS = [*symbols.STATES.values(), *(each for each in vars(symbols).values() if isinstance(each, symbols.Symbol))]
SIGNS = [*(symbol.sign for symbol in SYMBOLS), symbols.MARK]


def test_no_two_meanings_share_a_sign_also_in_ascii() -> None:
    assert len(set(SIGNS)) == len(SIGNS)
    plain = [sign.translate(symbols.ASCII) for sign in SIGNS]
    assert all(each.isascii() for each in plain)
    assert len(set(plain)) == len(plain)


def test_no_two_meanings_that_have_a_colour_share_it() -> None:
    roles = [symbol.role for symbol in SYMBOLS if symbol.role not in ("", "quiet")]
    assert len(set(roles)) == len(roles)


@pytest.mark.parametrize("state", symbols.STATES)
def test_the_sign_of_a_state_means_nothing_else(state: str) -> None:
    sign = symbols.STATES[state].sign
    elsewhere = [
        f"{path.name}: {line.strip()}"
        for path in project_files(PROGRAM, "*.py")
        if path.name != "symbols.py"
        for line in path.read_text("utf-8").splitlines()
        if sign in line
    ]
    assert elsewhere == []
