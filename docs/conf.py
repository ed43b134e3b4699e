"""Sphinx settings: executed vignettes, the API reference from numpydoc docstrings, no network."""

import os
import shutil
from importlib.metadata import version as _version
from pathlib import Path

_HERE = Path(__file__).parent
_VIGNETTES = _HERE.parent / "vignettes"

project = "dpreg"
author = "The dpreg developers"
copyright = f"2026, {author}"
release = version = _version("dpreg")

# ---- pages --------------------------------------------------------------------------------------

# Sphinx reads one folder, and the vignettes live beside it: they are copied in. Copies are new
# files, so that every build runs every page: dpreg may have changed where the page has not.
_COPIES = _HERE / "vignettes"
shutil.rmtree(_COPIES, ignore_errors=True)
shutil.copytree(_VIGNETTES, _COPIES, copy_function=shutil.copyfile)

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# ---- notebooks ----------------------------------------------------------------------------------

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 1200  # seconds for a cell: it ends what hangs, on a busy machine too
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "error"  # such as a warning

# Pages on data that cannot be shipped say so in a comment. Without the folder that DPREG_DATA names
# they are built, with a warning box on top, and not run.
if not os.environ.get("DPREG_DATA"):
    _NEED_DATA = [
        page.name
        for page in sorted(_COPIES.glob("*.md"))
        if "data: by hand" in page.read_text(encoding="utf-8")
    ]
    nb_execution_excludepatterns = [f"vignettes/{name}" for name in _NEED_DATA]
    _BOX = (
        "\n:::{warning}\nBuilt where `DPREG_DATA` names no folder of data: the code below was "
        "not run, and its outputs are missing.\n:::\n"
    )
    for _name in _NEED_DATA:
        _text = (_COPIES / _name).read_text(encoding="utf-8")
        _head, _title, _rest = _text.partition("\n# ")
        _line, _newline, _body = _rest.partition("\n")
        # Unrun cells have no kernel to say what language they are in.
        _head = _head.replace(
            "\n---", "\nlanguage_info:\n  name: python\n  pygments_lexer: python\n---"
        )
        _page = "".join([_head, _title, _line, _newline, _BOX, _body])
        (_COPIES / _name).write_text(_page, encoding="utf-8")

# Figures are drawn as SVG, sharp at any width; the kernels read that from this profile.
_PROFILE = _HERE / "_build" / "ipython" / "profile_default"
_PROFILE.mkdir(parents=True, exist_ok=True)
(_PROFILE / "ipython_kernel_config.py").write_text(
    'c.InlineBackend.figure_formats = {"svg"}\nc.HistoryManager.enabled = False\n'
    "c.IPKernelApp.log_level = 40\n",
    encoding="utf-8",
)
os.environ["IPYTHONDIR"] = str(_PROFILE.parent)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# ---- reference ----------------------------------------------------------------------------------

autosummary_generate = True
# A module's pages are the names in its __all__, wherever they were defined.
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ---- looks --------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "dpreg"
html_static_path = ["_static"]
html_css_files = ["dpreg.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "dpreg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
# The home page has its doors; a list of pages beside them would say it twice.
html_sidebars = {"index": [], "changelog": []}
copybutton_exclude = ".linenos, .gp, .go"
