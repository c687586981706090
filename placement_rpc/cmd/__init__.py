# SPDX-License-Identifier: Apache-2.0
"""The programs, and the choice of oslo.service's backend before any other import."""

import warnings

from oslo_service import backend

# Importing oslo.messaging selects the eventlet backend unless another has been selected before.
# Libraries that do not need eventlet import it too if it is installed, hence the filter.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
backend.init_backend(backend.BackendType.THREADING)
