# SPDX-License-Identifier: Apache-2.0
"""gunicorn serves the HTTP facade::

    gunicorn --config /etc/placement-rpc/gunicorn.conf.py placement_rpc.http.wsgi:application
"""

from placement_rpc.service.readiness import Readiness

bind = ["0.0.0.0:8778"]

# With [api] transport = local each process holds a candidate index and up to [database]
# max_pool_size connections.
workers = 2
# [api] threads and max_waiting together: each request occupies a thread, also while it waits.
worker_class = "gthread"
threads = 136

# Seconds for which accepted requests may go on when the server is stopped or reloaded.
graceful_timeout = 30
# Longer than a proxy keeps unused connections, so that the proxy is the one that closes them.
keepalive = 65
# A query of allocation candidates may name hundreds of aggregates. The default is 4094 bytes; 0 is
# without limit, and a proxy in front has its own.
limit_request_line = 0

# The format of Apache and nginx, then the microversion, the id of the request and the seconds that
# it took. 'placement-rpc-manage placement shadow' can read it.
accesslog = "/var/log/placement-rpc/access.log"
access_log_format = (
    '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s" '
    "%({openstack-api-version}o)s %({x-openstack-request-id}o)s %(L)s")
# The service's own log goes where placement-rpc.conf says; gunicorn's messages go to the journal.
errorlog = "-"

# logrotate sends it USR1, which reopens the access log.
pidfile = "/run/placement-rpc-api/api.pid"
control_socket_disable = True

_readiness = Readiness()


def post_worker_init(worker):
    """Report readiness when a worker has loaded the application, and not when gunicorn listens."""
    _readiness.report()
