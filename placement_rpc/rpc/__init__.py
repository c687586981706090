# SPDX-License-Identifier: Apache-2.0
"""Both ends of the RPC contract on the bus."""
