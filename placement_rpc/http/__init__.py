# SPDX-License-Identifier: Apache-2.0
"""The HTTP facade: thin resources over :class:`placement_rpc.api.PlacementAPI`."""
