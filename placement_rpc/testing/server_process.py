# SPDX-License-Identifier: Apache-2.0
"""Server processes that a fixture owns, and that do not outlive the process of the tests."""

import contextlib
import glob
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

from pifpaf import drivers

START_TIMEOUT = 120

# Below the range from which Linux picks ports for outgoing connections, which could otherwise take
# the port of a stopped server.
_PORTS = range(15000, 32000)

# The shell starts a watchdog in the background and becomes the server. The watchdog waits for the
# end of a pipe whose other end only the test process has, that is, for the death of that process;
# then it ends the server and removes its directory. PR_SET_PDEATHSIG would be lost when setpriv
# changes the user, and would trigger when the thread that started the server ends, rather than the
# process. A process that was forked without exec (multiprocessing's "fork") shares the pipe, so it
# keeps the server alive too.
_SUPERVISED = """
signal=$1 directory=$2; shift 2
exec 3<&0 </dev/null
{
    read -r _ <&3
    # Repeated until the server is gone: PostgreSQL takes a moment to end its children.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do kill -s "$signal" $$ || break; sleep 0.5; done
    # Patroni starts PostgreSQL in a session of its own.
    pid=$(head -n 1 "$directory/data/postmaster.pid")
    grep -q "$directory" "/proc/$pid/cmdline" && kill -s KILL "$pid"
    rm -rf "$directory"
    kill -s KILL -- -$$
} >/dev/null 2>&1 &
exec "$@" 3<&-
"""


def path():
    """Return the ``PATH`` on which the programs of the servers are found."""
    newest_first = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    # RabbitMQ's directory before /usr/sbin, where Debian's wrappers insist on the user rabbitmq.
    return os.pathsep.join([
        "/usr/lib/rabbitmq/bin", *newest_first, os.environ.get("PATH", os.defpath), "/usr/sbin"])


def reserve_port(fixture):
    """Return a free port of 127.0.0.1 that no other fixture gets while this one is set up."""
    # Not the global generator, which a test may have seeded alike in every process.
    port = random.SystemRandom().choice(_PORTS)
    # A name in the abstract namespace is a lock between processes that the kernel releases.
    lock = socket.socket(socket.AF_UNIX)
    fixture.addCleanup(lock.close)
    try:
        lock.bind(f"\0reserved-port-{port}")
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return reserve_port(fixture)
    return port


def _children(pid):
    """Return the pids of all processes below one, but those of shells, as a list."""
    found = []
    with contextlib.suppress(OSError):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for child in map(int, children.split()):
            if pathlib.Path(f"/proc/{child}/comm").read_text() != "sh\n":
                found += [child, *_children(child)]
    return found


def signal_all(pid, number):
    """Send a signal to a process and all below it; the watchdog is none of them."""
    for each in (pid, *_children(pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, number)


class ServerProcess(drivers.Driver):
    """A server that can crash, freeze, and be started again."""

    # The server's command line, a regular expression for its log line when it accepts
    # connections, and the signal that ends it at once.
    _command = ()
    _ready = ""
    _crash = signal.SIGKILL
    # The signal on which it ends in an orderly way.
    _end = signal.SIGTERM
    #: The running server, a subprocess.Popen; None before the first start.
    process = None

    def _setUp(self):
        # Not super()._setUp(), which would start pifpaf's own server; only its directory is used.
        drivers.Driver._setUp(self)

    def putenv(self, key, value, raw=False):
        """Do nothing; pifpaf would change the environment of the calling process."""

    def start(self):
        """Start the server on its existing data and wait until it accepts connections."""
        self.process = self._serve(self._command, self._ready)

    def stop(self):
        """Stop the server as a crash would, keeping its data; do nothing if it is stopped."""
        if self.process:
            self._kill(self.process)

    def kill(self):
        """Kill all processes of the server at once, as a power cut does; it may be started again.

        Unlike :meth:`stop`, nothing is written first, and no connection is closed.
        """
        signal_all(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._kill(self.process)

    def shut_down(self):
        """End the server in an orderly way, as its service manager does; it may be started again.

        :raises RuntimeError: if it does not end in time
        """
        self.process.send_signal(self._end)
        try:
            self.process.wait(START_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self._command} did not end") from None
        self._kill(self.process)

    def restart(self):
        """Stop the server as a crash would, and start it again."""
        self.stop()
        self.start()

    def freeze(self):
        """Stop all processes of the server without ending them, as a machine that hangs does."""
        signal_all(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        """Let a frozen server go on."""
        signal_all(self.process.pid, signal.SIGCONT)

    def _surroundings(self):
        return {"cwd": self.tempdir, "env": {"PATH": path(), "LANG": "C.UTF-8", **self.env}}

    def _run(self, *command):
        done = subprocess.run(
            command, check=False, input="", capture_output=True, text=True, **self._surroundings()
        )
        if done.returncode:
            raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _serve(self, command, ready):
        with open(f"{self.tempdir}/log", "a+b") as log:
            start = log.tell()
            process = subprocess.Popen(
                ["sh", "-c", _SUPERVISED, "sh", self._crash.name[3:], self.tempdir, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._surroundings(),
            )
            self.addCleanup(self._kill, process)
            deadline = time.monotonic() + START_TIMEOUT
            while True:
                log.seek(start)
                text = log.read().decode(errors="replace")
                if re.search(ready, text):
                    return process
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command} did not start:\n{text}")
                time.sleep(0.01)

    def _kill(self, process):
        if process.stdin.closed:
            return
        process.send_signal(self._crash)
        # A frozen server takes no signal but SIGKILL before it goes on.
        signal_all(process.pid, signal.SIGCONT)
        process.wait()
        # The watchdog is still in the process group, so its id has not been reused.
        os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
