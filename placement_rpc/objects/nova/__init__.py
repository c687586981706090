# SPDX-License-Identifier: Apache-2.0
"""nova's own objects, as nova-computes of any release send and expect them."""
