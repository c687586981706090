# SPDX-License-Identifier: Apache-2.0
"""Rolling upgrades of what is stored: the gate, online migrations, checks and status."""
