# SPDX-License-Identifier: Apache-2.0
"""Moving over from OpenStack Placement, and back: rules, no SQL."""
