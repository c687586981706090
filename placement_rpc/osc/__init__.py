# SPDX-License-Identifier: Apache-2.0
"""A plugin of the ``openstack`` client, whose commands call the HTTP facade."""
