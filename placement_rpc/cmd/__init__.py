# SPDX-License-Identifier: Apache-2.0
"""The programs."""

from oslo_service import backend

# Importing oslo.messaging chooses the eventlet backend unless another was chosen before.
backend.init_backend(backend.BackendType.THREADING)
