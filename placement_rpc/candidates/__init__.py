# SPDX-License-Identifier: Apache-2.0
"""Which providers have room for a request."""
