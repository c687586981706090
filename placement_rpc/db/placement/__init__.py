# SPDX-License-Identifier: Apache-2.0
"""SQL of the database of OpenStack Placement."""
