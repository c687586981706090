# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage dead-letters``: list, show, replay and discard dead letters."""

import json

import fixtures
import kombu

from placement_rpc.cmd import manage
from placement_rpc.notifications import envelope
from tests import base, programs
from tests.integration import test_queue_listener


class DeadLettersTest(test_queue_listener.QueueTest):

    def manage(self, *arguments, code=0):
        path = self.path.with_suffix(".conf")
        path.write_text(f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
                        f"[queues]\ndead_letters = {self.conf.queues.dead_letters}\n")
        done = programs.run(manage, "--config-file", str(path), "dead-letters", *arguments)
        self.assertEqual(code, done.code, done.stderr)
        return done

    def test_list_show_replay_and_discard(self):
        self.listen()
        self.assertEqual([], json.loads(self.manage("list").stdout))
        self.publish("nonsense")
        self.change(2)

        def fail(event):
            raise RuntimeError("no")

        self.listen(fail)
        found = json.loads(self.manage("list").stdout)
        self.assertEqual([None, "resource_provider.create", "resource_provider.create"],
                         [each["what"] for each in found])
        self.assertEqual(3, len(json.loads(self.manage("list", "--queue", self.queue).stdout)))
        self.assertEqual([], json.loads(self.manage("list", "--queue", "other").stdout))
        self.assertEqual("RuntimeError: no", found[1]["reason"])
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "200"))
        self.assertIn("RuntimeError: no", self.manage("list", "--format", "table").stdout)
        shown = json.loads(self.manage("show", found[1]["id"]).stdout)
        self.assertEqual("resource_provider.create",
                         envelope.opened(json.dumps(shown["body"]))["event_type"])
        self.assertEqual(found[1]["id"], envelope.opened(json.dumps(shown["body"]))["message_id"])
        self.assertIn("x does not exist", self.manage("show", "x", code=1).stderr)
        self.assertIn("--queue or --all", self.manage("replay", code=1).stderr)
        self.assertIn("0 dead letters were removed", self.manage(
            "discard", found[0]["id"], "--queue", "other", code=1).stdout)
        self.assertIn("1 dead letters were removed", self.manage(
            "discard", found[0]["id"], "--queue", self.queue).stdout)
        self.assertIn("there is no dead letter x", self.manage(
            "replay", found[1]["id"], "x", code=1).stderr)
        self.assertEqual([1], self.listen())
        self.assertIn("1 dead letters were sent again", self.manage("replay", "--all").stdout)
        self.assertEqual([1, 2], self.listen())
        self.assertEqual([], json.loads(self.manage("list").stdout))

    def test_a_look_at_them_does_not_change_their_order(self):
        self.listen()
        names = [str(number) for number in range(200)]
        for name in names:
            self.publish(name, message_id=name)
        self.listen()
        letters = self.dead_letters()
        # The broker's order would be a matter of chance.
        for _ in range(3):
            self.assertEqual(names, [letter.id for letter in letters.all()])
        letters.discard(lambda letter: letter.id in names[:100:2])
        names = [*names[1:100:2], *names[100:]]
        self.assertEqual(names, [letter.id for letter in letters.all()])
        letters.replay(lambda letter: True)
        self.listen()
        self.assertEqual(names, [letter.id for letter in letters.all()])

    def test_a_dead_letter_whose_queue_is_deleted_stays_and_others_are_replayed(self):
        self.listen()
        self.publish("nonsense")
        self.listen()
        gone, self.queue = self.queue, f"other-{base.new_uuid()}"
        self.listen()
        self.publish("nonsense")
        self.listen()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete(gone)
        letter_id = json.loads(self.manage("list").stdout)[0]["id"]
        # Both have the same body, and therefore the same id.
        self.assertIn("in several queues", self.manage("replay", letter_id, code=1).stderr)
        done = self.manage("replay", "--all", code=1)
        self.assertIn("did not accept it", done.stderr)
        self.assertIn("1 dead letters were sent again", done.stdout)
        self.assertEqual([gone], [each["queue"] for each in json.loads(
            self.manage("list").stdout)])
