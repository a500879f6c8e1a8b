"""How the pages in this folder become a site: `make docs`, offline, warnings are errors."""

import glfm

project = "glfm"
author = "The glfm maintainers"
release = version = glfm.__version__
project_copyright = author

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
myst_heading_anchors = 3
nb_execution_mode = "off"  # `make notebooks` runs them and keeps what they show

autodoc_member_order = "bysource"
autodoc_mock_imports = ["dask", "distributed"]  # optional
autodoc_typehints = "none"  # docstrings say what arguments are
napoleon_google_docstring = False
napoleon_use_ivar = True

highlight_language = "none"  # blocks without a language are what was printed
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"glfm {release}"
html_show_sourcelink = False
html_show_sphinx = False
