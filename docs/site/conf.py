"""Sphinx's settings for the site: scripts/site builds it. Nothing is fetched while it is built, and nothing by its pages."""
import os
import pathlib

project = "sparsek"
version = release = os.environ.get("SPARSEK_VERSION", "")
author = "the sparsek authors"
copyright = author  # noqa: A001
extensions = ["breathe", "myst_parser"]
breathe_projects = {"sparsek": str(pathlib.Path(__file__).resolve().parents[1] / "site-header" / "xml")}  # Doxygen's, of the public headers
breathe_default_project = "sparsek"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# As GitHub reads the pages: what MyST has besides is off.
myst_disable_syntax = ["myst_line_comment", "myst_block_break", "myst_target", "myst_role"]
myst_enable_extensions = ["strikethrough"]
myst_heading_anchors = 6
exclude_patterns = ["as-they-are"]
html_extra_path = ["as-they-are"]
smartquotes = False  # much of what stands in quotes is code
html_theme = "furo"
html_title = "sparsek"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "default"
pygments_dark_style = "monokai"
# GitHub shows any language, and pages may begin a section two levels down.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
