# SPDX-License-Identifier: Apache-2.0
"""Options of the HTTP facade."""

from oslo_config import cfg

GROUP = cfg.OptGroup("api", title="The HTTP facade")

# What a consumer belongs to that was claimed for before microversion 1.8, where a request can
# not say it.
_INCOMPLETE = "00000000-0000-0000-0000-000000000000"

OPTS = [
    cfg.StrOpt(
        "auth_strategy", default="keystone",
        choices=[("keystone", "tokens of a keystone, as [keystone_authtoken] says"),
                 ("noauth2", "for development: the token is USER[:PROJECT], and the user "
                             "'admin' has the role admin")],
        help="Who is believed to be whom. 'placement-rpc standalone' uses noauth2 unless "
             "something else is configured."),
    cfg.StrOpt(
        "transport", default="local",
        choices=[("local", "the process opens the database itself"),
                 ("rpc", "calls go over transport_url, and the process needs no access to the "
                         "database; conductors check the policy once more")],
        help="How 'placement_rpc.http.wsgi:application' reaches the service."),
    cfg.HostAddressOpt(
        "bind_host", default="127.0.0.1",
        help="Address that 'placement-rpc standalone' listens on for HTTP."),
    cfg.PortOpt(
        "bind_port", default=8778,
        help="Port that 'placement-rpc standalone' listens on for HTTP; 0 for any that is free."),
    cfg.IntOpt(
        "threads", default=16, min=1, max=256,
        help="HTTP requests that 'placement-rpc standalone' works on at a time, beside those "
             "that wait for events."),
    cfg.IntOpt(
        "max_body", default=1024 * 1024, min=1024,
        help="The most bytes that the body of a request may have."),
    cfg.FloatOpt(
        "deadline", default=15.0, min=0.1,
        help="Seconds after which a request is given up that the service does not answer. A "
             "client that repeats a change with the same Idempotency-Key has it done once."),
    cfg.IntOpt(
        "max_waiting", default=8, min=0,
        help="Requests that may wait for events at a time in one process. Each holds a thread "
             "of the server, which has to have more of them."),
    cfg.StrOpt(
        "incomplete_consumer_project_id", default=_INCOMPLETE,
        help="Project of a new consumer whose allocations are put by a request that can not "
             "name one (before microversion 1.8)."),
    cfg.StrOpt(
        "incomplete_consumer_user_id", default=_INCOMPLETE,
        help="User of a new consumer whose allocations are put by a request that can not name "
             "one (before microversion 1.8)."),
]
