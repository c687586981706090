# SPDX-License-Identifier: Apache-2.0
"""Move a cloud from OpenStack Placement to this service and back: the rules, without SQL."""
