"""Generated parts of the pages are current, links work, named modules exist, and Python examples compile."""

from __future__ import annotations

import re
from pathlib import Path

import generate
import pytest
from support.project_files import project_files

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *project_files(ROOT / "docs", "*.md")]
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("page", sorted(generate.PAGES.glob("*.md")), ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_current(page: Path) -> None:
    text = page.read_text("utf-8")

    assert generate.generated(text) == text, "run: python docs/generate.py"


def test_every_generated_part_is_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in generate.PAGES.glob("*.md"))

    assert {part for part in generate.PARTS if f"<!-- generated: {part} -->" in text} == set(generate.PARTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_installs_from_the_checkout(page: Path) -> None:
    """The package is on no index yet, which the README states beside the command; the changelog is for the release."""
    text = page.read_text("utf-8")
    if page.name == "changelog.md" or "not on PyPI yet" in text:
        return
    assert [line for line in re.findall(r"pip install .*", text) if "graphile-worker" in line] == []


def test_the_readme_installs_the_same_from_an_index_and_from_the_checkout() -> None:
    installed = re.findall(r"pip install '([\w.-]+?)(\[.+?\])'", _text("README.md"))

    assert sorted(installed) == [(".", "[embedded,watch]"), ("graphile-worker", "[embedded,watch]")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_conflict_of_a_merge(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", page.read_text("utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_a_page_names_files_and_folders_that_exist(page: str) -> None:
    named = set(re.findall(r"`((?:gw_\w+|sql|tests|bench|docs)/[\w./-]*|[\w./-]+\.(?:pyi?|sql))`", _text(page)))

    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_architecture_page_names_code_that_exists() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*(?:\.\w+)?|\w+_\w+\(\)|gw-[a-z]+)`", _text("docs/architecture.md")))
    files = [path for each in ("gw_core", "gw_tui", "sql") for path in project_files(ROOT / each, "*.*")]
    source = "".join(path.read_text("utf-8") for path in files if path.suffix in (".py", ".sql"))

    assert [name for name in sorted(named) if name.split(".")[-1].strip("()") not in source] == []


@pytest.mark.parametrize(
    "question",
    [
        "SQL of a claim", "Backoff", "retry from the console", "sweep's rule", "payload is decoded", "--grace-period",
        "wording of a log line",
    ],
)  # fmt: skip
def test_the_architecture_page_answers_where_something_is(question: str) -> None:
    (answer,) = [line for line in _text("docs/architecture.md").splitlines() if re.match(rf"\| .*{question}", line)]

    assert re.search(r"\| `(gw_|sql)", answer)


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize(("name", "distribution"), [("FastAPI", "fastapi")])
def test_a_page_names_the_version_of_a_framework_that_its_program_needs(name: str, distribution: str) -> None:
    """The program of the page is tested with the least version or a newer one, and fails with an older one."""
    (least,) = re.findall(rf'"{distribution}>=([\d.]+)"', _text("pyproject.toml"))

    assert f"needs {name} {least}" in _text(f"docs/guide/{distribution}.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_that_is_shown_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        compile(block, str(page), "exec")
