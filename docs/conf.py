"""Settings of the documentation; build it with ``sphinx-build -W --keep-going -n docs OUTPUT``."""

import sys
import warnings
from pathlib import Path

import drhmm

sys.path.insert(0, str(Path(__file__).parent))

project = "drhmm"
author = "The drhmm developers"
copyright = author  # noqa: A001
version = release = drhmm.__version__

extensions = [
    "myst_parser",
    "run_examples",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "data", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
default_role = "autolink"
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "doc_module": ("drhmm",),
    "backreferences_dir": None,
    "ignore_repr_types": r"matplotlib",
}
warnings.filterwarnings("error", module=r"drhmm\b")

html_theme = "pydata_sphinx_theme"
html_title = "drhmm"
html_static_path = ["_static"]
html_css_files = ["drhmm.css"]
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"
# Pages without pages below them have nothing to show on the left.
html_sidebars = {
    page: []
    for page in (
        *("index", "getting_started", "choosing", "after_fit", "alarms", "production", "ecosystem", "comparison"),
        *("glossary", "mathematics", "reliability", "contributing", "changelog"),
    )
}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "comparison": []},
}

# Addresses of earlier pages lead to the section that has their text now.
MOVED = {
    "troubleshooting": "choosing.html#when-results-disappoint",
    "clusters": "ecosystem.html#many-machines",
    "from_hmmlearn": "comparison.html#from-hmmlearn",
    "mathematics_more": "mathematics.html#the-unknown",
    "platforms": "reliability.html#platforms",
}


def write_moved(app, failure):
    """Write a page that forwards to the new address for each address in `MOVED`."""
    for old, new in MOVED.items():
        page = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={new}"><a href="{new}">{new}</a>\n'
        Path(app.outdir, f"{old}.html").write_text(page)


def setup(app):
    """Connect `write_moved` to the end of a build."""
    app.connect("build-finished", write_moved)
