# SPDX-License-Identifier: Apache-2.0
"""The methods of :class:`placement_rpc.manager.Manager`, a module for each kind of resource."""
