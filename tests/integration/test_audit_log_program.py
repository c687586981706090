# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage audit-log`` on RabbitMQ."""

import os
import pathlib
import subprocess
import sys

import fixtures

from placement_rpc.cmd import manage
from tests import base, programs
from tests.integration import test_queue_listener


class AuditLogProgramTest(test_queue_listener.QueueTest):

    def setUp(self):
        super().setUp()
        self.place = self.useFixture(fixtures.TempDir())
        self.logged = self.place.join("program.log")
        self.configuration = self.place.join("placement.conf")
        with open(self.configuration, "w") as file:
            file.write(f"[DEFAULT]\ntransport_url = {self.broker.url}\nlog_file = {self.logged}\n"
                       f"[notifications]\ntopic = {self.conf.notifications.topic}\n"
                       f"[queues]\ndead_letters = {self.conf.queues.dead_letters}\n"
                       "listener_attempts = 1\n")

    def arguments(self, file, queue=None):
        return ("--config-file", self.configuration, "audit-log", "--file", file, "--queue",
                self.queue if queue is None else queue)

    def refused(self, *arguments, **how):
        done = programs.run(manage, *self.arguments(*arguments, **how), "--idle", "1")
        self.assertEqual(1, done.code, done.stderr)
        return done.stderr

    def lines(self, path):
        with open(path) as file:
            return len(file.readlines())

    def start(self):
        program = subprocess.Popen([sys.executable, "-m", "placement_rpc.cmd.manage",
                                    *self.arguments(self.place.join("audit.log"))])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def test_events_wait_for_a_file_that_cannot_be_written(self):
        disk, gone = self.place.join("disk"), self.place.join("gone")
        os.mkdir(disk)
        os.symlink(os.path.join(disk, "audit.log"), self.place.join("audit.log"))
        # The queue has the events of before the program's start, too.
        self.listener().declare()
        self.change(1)
        program = self.start()
        written, log = os.path.join(disk, "audit.log"), pathlib.Path(self.logged)
        base.wait_until(lambda: os.path.exists(written) and self.lines(written) == 1)
        os.rename(disk, gone)
        self.change(2)
        base.wait_until(lambda: "Event 2 cannot be written" in log.read_text())
        os.rename(gone, disk)
        base.wait_until(lambda: self.lines(written) == 3)
        os.rename(disk, gone)
        self.change(1)
        base.wait_until(lambda: "Event 4 cannot be written" in log.read_text())
        program.terminate()
        self.assertEqual(0, program.wait(20))
        os.rename(gone, disk)
        program = self.start()
        base.wait_until(lambda: self.lines(written) == 4)
        program.terminate()
        self.assertEqual(0, program.wait(20))
        self.assertEqual([], self.dead_letters().all())

    def test_a_file_that_is_no_file_is_refused(self):
        pipe = self.place.join("pipe")
        os.mkfifo(pipe)
        self.assertIn("Not a regular file", self.refused(pipe))

    def test_the_queue_of_another_program_is_refused(self):
        path = self.place.join("audit.log")
        self.dead_letters().all()
        for queue, words in (
                (self.conf.queues.dead_letters, "of another kind"), ("", "1 to 255 bytes"),
                ("amq.mine", "amq.")):
            self.assertIn(words, self.refused(path, queue=queue))
