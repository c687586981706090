# SPDX-License-Identifier: Apache-2.0
"""Resource accounting for clouds on the message bus."""

__version__ = "0.3.0"
