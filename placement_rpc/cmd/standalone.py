# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc standalone``: the whole service in one process, in the foreground."""

import contextlib
import os
import pathlib
import queue
import shutil
import signal
import sys

import placement_rpc
from placement_rpc import api, exception
from placement_rpc.amqp.broker import EMBEDDED, Broker
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.cmd import config_sources, state_file
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import urls
from placement_rpc.db.queries import events, relaying
from placement_rpc.http.facade import Facade
from placement_rpc.http.server import Server
from placement_rpc.service import interpreter, logs, private_files
from placement_rpc.service.conductor import Conductor, prepare_store

IN_PROCESS = f"{EMBEDDED}://standalone/"
_LOG = "placement-rpc.log"
# For HTTP, unless they are configured. Most of them wait for their turns, if at all.
_THREADS = 128


@private_files.owner_only()
def run(options, conf):
    """Run until SIGINT or SIGTERM.

    :param options: the parsed arguments
    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :returns: int, the exit code
    """
    interpreter.prefer_quick_requests()
    # A handler that set an Event would wait for ever if the signal came while its lock is held.
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.put(received))
    state_dir = pathlib.Path(conf.standalone.state_dir).absolute()
    state_dir.mkdir(parents=True, exist_ok=True)
    # Earlier releases, or the user, gave them other permissions.
    private_files.tighten(state_dir, _LOG, state_file.LOCK, *(
        f"{state_file.STORE}{end}" for end in ("", "-wal", "-shm")))
    with state_file.locked(state_dir) as is_alone:
        running = state_file.read(state_dir)
        if running or not is_alone:
            found = (f"process {running['pid']} already runs on {state_dir}; stop it" if running
                     else f"another process starts or stops on {state_dir}; try again")
            print(f"placement-rpc: {found} or name another directory with --state-dir",
                  file=sys.stderr)
            return 1
        _configure(options, configuration.register(conf), state_dir)
        _serve(options, conf, state_dir, signals)
    print("Stopped.", flush=True)
    return 0


def _serve(options, conf, state_dir, signals):
    """Run the service until a signal comes.

    :param signals: :class:`queue.SimpleQueue` of those that came
    """
    with contextlib.ExitStack() as stack:
        url, management_url = _bus_url(options, conf, stack)
        config_sources.override(conf, "transport_url", url)
        conductor = Conductor(conf, binary="placement-rpc-standalone")
        prepare_store(conf)
        if management_url:
            # The broker is private.
            _publish_again(conf)
        stack.callback(conductor.stop)
        conductor.start()
        server = _http_server(conf, conductor, stack)
        state_file.write(state_dir, transport_url=url, database=conf.database.connection,
                         management_url=management_url, http_url=server.url)
        stack.callback(state_file.remove, state_dir)
        _print_addresses(conf, state_dir, server.url)
        signals.get()
        print("\nStopping after the accepted calls are finished.", flush=True)


def _publish_again(conf):
    """Have the relay fill the stream of a private broker, which is empty at each start.

    A store on a server may be that of other services, which have another broker.
    """
    def rewind(tx):
        oldest = events.status(tx)["oldest_kept"]
        if oldest is not None:
            relaying.rewind(tx, oldest - 1)

    with contextlib.closing(db.Database(conf)) as database:
        if database.dialect == "sqlite":
            database.write(rewind, "replay")


def _configure(options, conf, state_dir):
    """Set the places of database and log, unless they are configured."""
    if options.database or not conf.database.connection:
        url = options.database or urls.of_sqlite(state_dir / state_file.STORE)
        config_sources.override(conf, "connection", url, "database")
    # Keystone is used only if it is configured.
    conf.set_default("auth_strategy", "noauth2", group="api")
    conf.set_default("threads", _THREADS, group="api")
    if options.http_port is not None:
        conf.set_override("bind_port", options.http_port, group="api")
    # The terminal is for the addresses; the log goes to a file.
    conf.set_default("log_file", config_sources.literal(str(state_dir / _LOG)))
    conf.set_default("use_stderr", False)
    logs.setup(conf)


def _http_server(conf, conductor, stack):
    """Start the HTTP facade on the conductor's manager; return its server."""
    client = api.PlacementAPI(
        "local", conf, manager=conductor.manager, deadline=conf.api.deadline)
    stack.callback(client.close)
    server = Server(Facade(conf, client, metrics=conductor.manager.metrics,
                           check=conductor.check_database))
    stack.callback(server.stop)
    server.start()
    return server


def _bus_url(options, conf, stack):
    """Return the addresses of the bus and of its management interface, None if it is unknown.

    A configured bus is used unless the arguments say otherwise.
    """
    if options.transport_url:
        return options.transport_url, None
    if options.bus is None and conf.transport_url != state_file.NO_BUS:
        return conf.transport_url, None
    if options.bus == "rabbit":
        print("Starting a private RabbitMQ; this takes some seconds ...", flush=True)
        broker = stack.enter_context(private_broker())
        return broker.url, (f"http://{broker.username}:{broker.password}@127.0.0.1:"
                            f"{broker.management_port}")
    return IN_PROCESS, None


def private_broker():
    """Return a RabbitMQ of this process only.

    :returns: :class:`placement_rpc.testing.servers.RabbitMQ`, with its management interface
    :raises ServiceUnavailable: if the extra or the programs that it needs are not installed
    """
    try:
        from placement_rpc.testing import servers
    except ImportError as error:
        raise exception.ServiceUnavailable(
            reason=f"a private broker needs the 'testing' extra: {error}") from None
    missing = servers.missing("rabbitmq-server")
    if missing:
        raise exception.ServiceUnavailable(
            reason=f"a private broker needs {', '.join(missing)} installed")
    return servers.RabbitMQ(["rabbitmq_management"])


def _address_of(broker):
    """Return the address of a RabbitMQ, and why no connection to it is possible."""
    where = "RabbitMQ at " + ", ".join(node.address for node in broker.nodes)
    try:
        with broker.connected():
            return where
    except FAILURES as error:
        return (f"{where}, which cannot be reached yet\n"
                f"         ({error}); the service keeps trying")


def _print_addresses(conf, state_dir, http_url):
    broker = Broker.of(conf)
    in_process = broker is None
    print(f"placement-rpc {placement_rpc.__version__} is running (Ctrl-C ends it)")
    print(f"  bus    {'inside this process' if in_process else _address_of(broker)}")
    token = " -H 'x-auth-token: admin'" if conf.api.auth_strategy == "noauth2" else ""
    print(f"  HTTP   {http_url}")
    if conf.api.ui:
        print(f"  page   {http_url}/ui/")
    print(f"  store  {urls.without_passwords(conf.database.connection)}")
    print(f"  log    {conf.log_file}")
    # As it was called, since its directory need not be in PATH.
    program = "placement-rpc" if shutil.which("placement-rpc") else os.path.relpath(sys.argv[0])
    if in_process:
        print("Try next, in another terminal:\n"
              f"  curl{token} {http_url}/resource_providers\n"
              f"  {program} --state-dir {state_dir} --local providers   reads the store\n"
              "  make demo               the main job on real compute nodes\n"
              "  make run BUS=rabbit     the same on RabbitMQ, for calls from other processes")
    else:
        print("Try next, in another terminal:\n"
              f"  curl{token} {http_url}/resource_providers\n"
              f"  {program} --state-dir {state_dir} ping\n"
              f"  {program} --state-dir {state_dir} providers\n"
              f"  {program} --state-dir {state_dir} usages\n"
              f"  {program} --state-dir {state_dir} listen      events as they happen")
    sys.stdout.flush()
