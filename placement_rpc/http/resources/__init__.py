# SPDX-License-Identifier: Apache-2.0
"""What is found at the addresses, a module per resource: functions of one request."""
