# SPDX-License-Identifier: Apache-2.0
"""The processes of the service."""
