# SPDX-License-Identifier: Apache-2.0
"""nova's compute nodes: the resource tracker's cycle, migration and import."""
