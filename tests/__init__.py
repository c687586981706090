# SPDX-License-Identifier: Apache-2.0
"""What the system promises, as tests."""

from oslo_service import backend

# Before anything imports oslo.messaging; see placement_rpc.cmd.
backend.init_backend(backend.BackendType.THREADING)
