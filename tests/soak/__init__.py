# SPDX-License-Identifier: Apache-2.0
"""The service under load while parts of it fail, and the check of its answers: ``make soak``."""
