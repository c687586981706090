# SPDX-License-Identifier: Apache-2.0
"""What the system promises, as tests."""

# Before anything imports oslo.messaging: it chooses the threading backend.
import placement_rpc.cmd  # noqa: F401
