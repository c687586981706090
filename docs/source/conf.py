# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration."""

import placement_rpc
import placement_rpc.cmd

project = "placement_rpc"
copyright = "placement_rpc contributors"
release = placement_rpc.__version__
extensions = ["sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
exclude_patterns = []
html_theme = "alabaster"
html_theme_options = {"description": "Resource accounting for clouds on the message bus"}
