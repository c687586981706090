# SPDX-License-Identifier: Apache-2.0
"""What requests may carry and what answers look like: JSON schemas as data, a module per
resource."""
