# SPDX-License-Identifier: Apache-2.0
"""Limits of the messages between clients, conductors and listeners, and of HTTP bodies."""

from oslo_config import cfg

from placement_rpc import bodies

GROUP = cfg.OptGroup("messages", title="Limits of messages")

_COMPRESSIONS = [names[0] for names in bodies.COMPRESSIONS.values()]

OPTS = [
    cfg.IntOpt(
        "max_request", default=bodies.REQUESTS.size, min=64 * 1024,
        help="Maximum size of a call or a cast, in bytes, as it is sent and decompressed. A "
             "client refuses to send a larger one, and a conductor refuses it to its caller. A "
             "higher number allows larger batches of claims, and lets one message take more "
             "memory."),
    cfg.IntOpt(
        "max_answer", default=bodies.ANSWERS.size, min=64 * 1024,
        help="Maximum size of an answer or an event, in bytes, as it is sent and decompressed. A "
             "conductor sends an error instead of a larger answer. A higher number lets one "
             "answer take more memory of the client."),
    cfg.IntOpt(
        "max_request_elements", default=bodies.REQUESTS.elements, min=1000,
        help="Maximum number of elements (values, and keys of objects) in the JSON of a call, a "
             "cast or an HTTP request. Parsing stops all other threads of a process, for 75 ms "
             "with the default in the worst case, and for longer with a higher number."),
    cfg.IntOpt(
        "max_answer_elements", default=bodies.ANSWERS.elements, min=1000,
        help="Maximum number of elements in the JSON of an answer or an event. Parsing stops all "
             "other threads of a client for longer with a higher number."),
    cfg.IntOpt(
        "max_depth", default=bodies.REQUESTS.depth, min=16, max=200,
        help="Maximum number of lists and objects within each other in the JSON of a message or "
             "an HTTP request. No call of this release has more than 16."),
    cfg.ListOpt(
        "compressions", default=["gzip", "bz2"],
        item_type=cfg.types.String(choices=_COMPRESSIONS),
        help="Compressions of messages that are accepted: gzip, bz2 and lzma. Senders choose one "
             "with [oslo_messaging_rabbit] kombu_compression; messages that are not compressed "
             "are always accepted. LZMA takes much more time and memory than the others."),
]
