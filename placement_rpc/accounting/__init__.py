# SPDX-License-Identifier: Apache-2.0
"""The rules of the service, and the transactions that keep them."""
