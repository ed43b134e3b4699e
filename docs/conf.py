"""Sphinx settings: the API reference from numpydoc docstrings, pages in Markdown, no network."""

from importlib.metadata import version as _version

project = "dpreg"
author = "The dpreg developers"
copyright = f"2026, {author}"
release = version = _version("dpreg")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Differentially private variable selection"}

autosummary_generate = True
# A module's pages are the names in its __all__, wherever they were defined.
autosummary_imported_members = True
autosummary_ignore_module_all = False
templates_path = ["_templates"]
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
