# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ on kombu and py-amqp; knows nothing of placement."""
