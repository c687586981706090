# SPDX-License-Identifier: Apache-2.0
"""The commands of the ``openstack`` client: a plugin that talks to the HTTP facade."""
