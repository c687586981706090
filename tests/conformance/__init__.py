# SPDX-License-Identifier: Apache-2.0
"""The HTTP facade compared with openstack-placement, through the clients of the latter."""
