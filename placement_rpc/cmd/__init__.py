# SPDX-License-Identifier: Apache-2.0
"""The programs."""

import warnings

from oslo_service import backend

# Importing oslo.messaging chooses the eventlet backend unless another was chosen before, and
# libraries that can do without eventlet import it where it happens to be installed.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
backend.init_backend(backend.BackendType.THREADING)
