# SPDX-License-Identifier: Apache-2.0
"""The machines that a hypervisor can run."""

from oslo_versionedobjects import fields

from placement_rpc.objects.nova import base


@base.NovaObjectRegistry.register
class HVSpec(base.NovaObject):
    """An architecture, a kind of hypervisor and a mode of its machines."""

    # Version 1.0: Initial version
    # Version 1.1: Added the vz hypervisor
    # Version 1.2: Added the lxd hypervisor
    VERSION = "1.2"

    # Text, since later releases of nova extend its enumerations.
    fields = {
        "arch": fields.StringField(),
        "hv_type": fields.StringField(),
        "vm_mode": fields.StringField(),
    }
