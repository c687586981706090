# SPDX-License-Identifier: Apache-2.0
"""The methods of :class:`placement_rpc.api.PlacementAPI`, a module for each kind of resource."""
