# SPDX-License-Identifier: Apache-2.0
"""From one release to the next, side by side: manifests, pins, the gate, what is left to do."""
