"""The documentation site builds without warnings, documents every public name and loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from public_names import MODULES, names_of
from sphinx.util.inventory import InventoryFile
from support.databases import Run

pytestmark = [pytest.mark.once, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"|url\(([^)]+)\)"
)


@pytest.fixture(scope="module")
def site(gw_run: Run) -> Path:
    """Return the site, built once for all processes of the run."""
    folder = gw_run.folder / "site"
    with gw_run.alone("site"):
        if not (folder / "built").exists():
            build(folder)
            (folder / "built").touch()
    return folder / "html"


def build(folder: Path) -> None:
    """Build the site as `make docs` does."""
    options = ("-W", "--keep-going", "-q", "-j", "auto", "-b", "html", "-d", str(folder / "doctrees"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", str(folder / "html")],
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(site: Path, module: str) -> None:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    documented = {name for kind, entries in inventory.items() if kind.startswith("py:") for name in entries}

    assert [name for name in names_of(module) if f"{module}.{name}" not in documented] == []


def test_the_pages_load_nothing_from_other_servers(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]
    loaded = {
        target.strip("'\"")
        for file in files
        for found in LOADED.findall(file.read_text("utf-8"))
        for target in found
        if target
    }

    assert len(loaded) > 5
    assert [target for target in loaded if target.startswith(("http:", "https:", "//"))] == []


@pytest.mark.parametrize("page", ["guide/console", "reference/cli", "api/index", "adr/0002-own-ledger"])
def test_the_search_index_has_the_pages(site: Path, page: str) -> None:
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))

    assert page in index["docnames"]
    assert "searchtools.js" in (site / "search.html").read_text("utf-8")


def test_each_page_has_a_side_bar_with_its_section(site: Path) -> None:
    top = ("architecture", "benchmarks", "changelog", "chaos")
    built = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    pages = [page for page in built if page.parent != site or page.stem in top]
    found = {page: re.search(r'<nav class="bd-docs-nav.*?</nav>', page.read_text("utf-8"), re.DOTALL) for page in pages}

    assert len(found) > 60
    assert [str(page) for page, bar in found.items() if bar is None or "toctree-l1" not in bar[0]] == []


def test_options_keep_their_two_hyphens(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]

    assert [str(page) for page in pages if re.search("[\u2013\u2014][a-z]", page.read_text("utf-8"))] == []


@pytest.mark.parametrize("chapter", ["guide/django", "guide/fastapi", "guide/coming-from-celery"])
def test_the_front_page_links_the_chapter_of_each_reader(site: Path, chapter: str) -> None:
    assert f'href="{chapter}.html"' in (site / "index.html").read_text("utf-8")


def test_the_site_has_the_pictures(site: Path) -> None:
    shown = {path.name for path in (site / "_images").iterdir()}

    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} <= shown
