# SPDX-License-Identifier: Apache-2.0
"""Resource accounting for clouds on the message bus."""

import warnings

# Libraries that do not need eventlet import it if it is installed, and each program would print
# its warning, which only their authors can heed.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

__version__ = "0.3.0"
