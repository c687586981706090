# SPDX-License-Identifier: Apache-2.0
"""The processes of the service: conductor, command consumer, HTTP, and their housekeeping."""
