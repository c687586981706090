# SPDX-License-Identifier: Apache-2.0
"""Options of the HTTP facade."""

from oslo_config import cfg

GROUP = cfg.OptGroup("api", title="The HTTP facade")

OPTS = [
    cfg.StrOpt(
        "auth_strategy", default="keystone",
        choices=[("keystone", "Keystone tokens, validated as configured in "
                              "[keystone_authtoken]"),
                 ("noauth2", "for development: the token is USER[:PROJECT], and the user "
                             "'admin' has the role admin")],
        help="How callers are authenticated. 'placement-rpc standalone' uses noauth2 unless this "
             "option is set."),
    cfg.StrOpt(
        "transport", default="local",
        choices=[("local", "the process opens the database itself"),
                 ("rpc", "the process calls conductors over transport_url and needs no access "
                         "to the database; conductors check the policy again")],
        help="How 'placement_rpc.http.wsgi:application' reaches the service."),
    cfg.HostAddressOpt(
        "bind_host", default="127.0.0.1",
        help="Address that 'placement-rpc standalone' listens on for HTTP."),
    cfg.PortOpt(
        "bind_port", default=8778,
        help="Port that 'placement-rpc standalone' listens on for HTTP; 0 for any free port."),
    cfg.BoolOpt(
        "ui", default=True,
        help="Whether the facade serves its page for people at /ui/. The page is static files; "
             "what it shows is asked of the API with the rights of the person's token. With "
             "auth_strategy = keystone, /ui/auth exchanges a name and a password for a token "
             "there."),
    cfg.IntOpt(
        "threads", default=16, min=1, max=1024,
        help="Maximum number of HTTP requests that a process has at a time, in addition to those "
             "that wait for events: those that it works on, and those that wait for their turns. "
             "'placement-rpc standalone' has 128 unless this option is set. With another WSGI "
             "server, set its threads less max_waiting, 128 for the configurations of gunicorn "
             "and uWSGI that come with this service. While other clients make requests, too, a "
             "client may have twice as many under way as there are free threads, and "
             "requests_per_client at least; further ones are refused with 503 and a Retry-After. "
             "A lone client leaves requests_per_client threads free. A higher number refuses "
             "fewer requests, and takes more memory."),
    cfg.IntOpt(
        "requests_per_client", default=4, min=0,
        help="Maximum number of requests of one client (a user in a project, from one address) "
             "that a process works on at a time while other clients make requests too, or did "
             "within ten seconds. Of all clients together it works on six times as many, of a "
             "lone one on five times as many. Further requests wait for their turns, and are "
             "refused with 503 after 'deadline' seconds. A higher number lets a client that makes "
             "very many at a time delay the others more. 0 sets no limit, and then nothing is "
             "refused. Requests for events are counted by max_waiting instead."),
    cfg.IntOpt(
        "max_body", default=4 * 1024 * 1024, min=1024,
        help="Maximum size of a request body, in bytes; a larger one is refused with 413. A "
             "higher number lets one request take more memory."),
    cfg.FloatOpt(
        "deadline", default=15.0, min=0.1,
        help="Seconds after which a request that the service has not answered fails with 503 or "
             "504, and for which it waits for its turn before that. A client can then repeat a "
             "change with the same Idempotency-Key, and it is made once. A higher number makes "
             "clients wait longer during an outage."),
    cfg.IntOpt(
        "max_waiting", default=8, min=0,
        help="Maximum number of requests that wait for events at a time in one process; further "
             "ones are refused with 503. Each occupies a thread, so a WSGI server needs more "
             "threads than this. Streams of 'placement-rpc standalone' do not: see "
             "max_followers."),
    cfg.IntOpt(
        "max_followers", default=1000, min=0,
        help="Maximum number of streams of events (text/event-stream) at a time in 'placement-rpc "
             "standalone', which needs no thread for each; further ones are refused with 503. A "
             "higher number takes more file descriptors and memory. With another WSGI server "
             "each stream occupies a thread and counts to max_waiting."),
    cfg.IntOpt(
        "user_share", default=50, min=1, max=100,
        help="Maximum share of max_waiting and of max_followers that one user may take, in "
             "percent; one place at least. A higher share lets one user keep others from waiting "
             "for events."),
]
