# SPDX-License-Identifier: Apache-2.0
"""A unit test that does I/O fails."""

import pathlib
import socket
import subprocess
import sys
import threading

from tests import base, no_io


class NoIOTest(base.TestCase):

    def test_a_socket_a_process_and_a_file_are_refused(self):
        path = pathlib.Path("/nonexistent/file")
        with socket.socket() as listening:
            for what, arguments in (
                    (listening.bind, (("127.0.0.1", 0),)),
                    (listening.connect, (("127.0.0.1", 1),)),
                    (subprocess.run, ([sys.executable, "-V"],)),
                    (path.write_text, ("x",))):
                error = self.assertRaises(no_io.InputOutputRefused, what, *arguments)
                self.assertIn("A unit test does no I/O", str(error))

    def test_a_file_may_be_read(self):
        self.assertIn("class NoIOTest", pathlib.Path(__file__).read_text())

    def test_other_threads_are_not_checked(self):
        errors = []

        def bind():
            try:
                with socket.socket() as listening:
                    listening.bind(("127.0.0.1", 0))
            except no_io.InputOutputRefused as error:
                errors.append(error)

        thread = threading.Thread(target=bind)
        thread.start()
        thread.join()
        self.assertEqual([], errors)
