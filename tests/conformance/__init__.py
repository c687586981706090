# SPDX-License-Identifier: Apache-2.0
"""The HTTP facade beside openstack-placement, as the clients of that see the two."""
