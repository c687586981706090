# SPDX-License-Identifier: Apache-2.0
"""nova's own objects, as nova-compute of any release sends and expects them."""
