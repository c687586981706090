# SPDX-License-Identifier: Apache-2.0
"""The statements, a module per subject. Each takes the connection of the running transaction."""
