"""Sphinx configuration of the documentation site; `make docs` builds it with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from pygments.lexers.sql import PostgresLexer
from sphinx.application import Sphinx

from gw_core import __version__

sys.path.insert(0, str(Path(__file__).parent))  # where public_names.py is

project = "gw"
author = "the gw developers"
copyright = "the gw developers, MIT license"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "public_names"]
root_doc = "index"
exclude_patterns = ["build"]
smartquotes_action = "qe"  # no dashes: "--" begins an option
suppress_warnings = ["myst.header"]  # generated sections and included files may start below the first level
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "tasklist"]

# Docstrings are Markdown with single backticks; public_names.py turns those into literals.
default_role = "code"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_static_path = ["_static"]
html_css_files = ["gw.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"gw {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_sidebars = {page: [] for page in ("index", "search", "genindex", "py-modindex")}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: Sphinx) -> None:
    """Highlight SQL as PostgreSQL's dialect, and crontabs not at all."""
    app.add_lexer("sql", PostgresLexer)
    app.add_lexer("crontab", TextLexer)
