"""Configuration of the documentation site; `make docs` builds it without the network."""

import os
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "isrlearn"
author = "The isrlearn developers"
project_copyright = "The isrlearn developers, BSD-3-Clause"
release = version = metadata.version("isrlearn")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "generated_pages",
    "plain_names",
    "repository_links",
]
exclude_patterns = ["_ext", "generated/cases"]
default_role = "py:obj"
nitpicky = False

# Markdown stays readable on a code host: dollars for mathematics, headings as anchors.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
myst_all_links_external = False
suppress_warnings = ["myst.header", "config.cache"]

# The pages of the reference are written by _ext/generated_pages.py from `__all__`.
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"repair_a_network",
    "within_subsection_order": "gallery_order.ForReaders",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "default_thumb_file": str(HERE / "images" / "report.png"),
}

# Links into other projects need their inventories: only where the network may be used.
if os.environ.get("ISRLEARN_DOCS_NETWORK"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

linkcheck_timeout = 20
linkcheck_retries = 2

html_theme = "pydata_sphinx_theme"
html_title = "isrlearn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "isrlearn"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
NO_NEIGHBOURS = ("index", "start", "others", "contributing", "changelog", "generated/commands")
html_sidebars: dict[str, list[str]] = {page: [] for page in NO_NEIGHBOURS}
