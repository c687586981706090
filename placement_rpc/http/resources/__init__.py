# SPDX-License-Identifier: Apache-2.0
"""Handlers, a module per resource. A handler takes a Call and returns an Answer."""
