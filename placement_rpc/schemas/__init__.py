# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of requests and answers: data, a module per resource."""
