# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration."""

import pathlib
import sys

import placement_rpc
import placement_rpc.cmd

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "extensions"))

project = "placement_rpc"
copyright = "placement_rpc contributors"
release = placement_rpc.__version__
extensions = ["reference", "sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
exclude_patterns = []
html_theme = "furo"
html_title = "placement_rpc"
# 'make linkcheck' asks for external links only; these are of a service that the reader starts.
linkcheck_ignore = [r"http://127\.0\.0\.1:", r"https?://[\w.-]+\.example(\.|/|$)"]
linkcheck_timeout = 20
