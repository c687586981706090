# SPDX-License-Identifier: Apache-2.0
"""Lists of what nova knows, as its clients print them."""

import io
import json

from placement_rpc import exception
from placement_rpc.audit import listings
from placement_rpc.audit.known import Servers
from placement_rpc.audit.listings import Migration, Server
from tests import base

ONE, TWO = base.new_uuid(), base.new_uuid()
# The columns of 'openstack server list --all-projects --long'.
LONG = {"ID": ONE, "Name": "one", "Status": "ACTIVE", "Task State": None, "Power State": "Running",
        "Networks": {"private": ["10.0.0.5"]}, "Image Name": "N/A (booted from volume)",
        "Flavor": "m1.small", "Availability Zone": "nova", "Host": "cmp1.example.org",
        "Properties": {}, "Project ID": "blue"}


def servers(text):
    return list(listings.servers(io.StringIO(text), "list"))


class ServersTest(base.TestCase):

    def test_json_of_the_command_line_client(self):
        other = {**LONG, "ID": TWO, "Status": "SHELVED_OFFLOADED", "Host": None,
                 "Task State": "spawning"}
        self.assertEqual(
            [Server(ONE, "cmp1.example.org", "ACTIVE", "", "blue"),
             Server(TWO, "", "SHELVED_OFFLOADED", "SPAWNING", "blue")],
            servers(json.dumps([LONG, other], indent=2)))

    def test_json_of_the_compute_api(self):
        document = {"servers": [{
            "id": ONE, "status": "ACTIVE", "OS-EXT-STS:task_state": None, "tenant_id": "blue",
            "OS-EXT-SRV-ATTR:host": "cmp1", "OS-EXT-SRV-ATTR:hypervisor_hostname": "cmp1.org"}]}
        wanted = [Server(ONE, "cmp1.org", "ACTIVE", "", "blue")]
        self.assertEqual(wanted, servers(json.dumps(document)))
        # Its pages one after the other, and lines of objects.
        self.assertEqual(wanted * 2, servers(json.dumps(document) + "\n" + json.dumps(document)))
        self.assertEqual(wanted * 2, servers("\n".join(
            json.dumps(document["servers"][0]) for _ in range(2)) + "\n"))

    def test_json_of_uuids(self):
        self.assertEqual([Server(ONE), Server(TWO)], servers(json.dumps([ONE, TWO])))
        self.assertEqual([Server(ONE), Server(TWO)], servers(f'["{ONE}"]\n["{TWO}"]\n'))
        self.assertEqual([Server(ONE), Server(TWO)], servers(f'[]["{ONE}"]{{"ID": "{TWO}"}}'))
        self.assertEqual([], servers("[]"))
        self.assertEqual([], servers(" [ ]\n"))

    def test_csv(self):
        text = (f'"ID","Name","Status","Task State","Host"\n"{ONE}","a, b","ACTIVE","None","c1"\n'
                f'"{TWO.upper()}","x\ny","ERROR","","None"\n')
        self.assertEqual([Server(ONE, "c1", "ACTIVE", ""), Server(TWO, "", "ERROR", "")],
                         servers(text))
        self.assertEqual([Server(ONE)], servers(f"uuid\n{ONE}\n"))

    def test_plain_lines(self):
        text = f"# of cell 1\n\n{ONE} cmp1\n{TWO.replace('-', '')}\n  {ONE},cmp2  # again\r\n"
        self.assertEqual([Server(ONE, "cmp1"), Server(TWO), Server(ONE, "cmp2")], servers(text))
        self.assertEqual([Server(ONE, "cmp1")], servers(f'"{ONE}","cmp1"\n'.replace('"', "")))
        self.assertEqual([Server(ONE)], servers(f"\ufeff{ONE}"))

    def test_lists_longer_than_what_is_read_at_once(self):
        some = [{**LONG, "ID": base.new_uuid(), "Name": "é" * (number % 300)}
                for number in range(2000)]
        for text in (json.dumps(some), json.dumps(some, indent=1, ensure_ascii=False),
                     json.dumps({"servers": some}), "\n".join(map(json.dumps, some)),
                     "\n".join(f"{each['ID']} {each['Host']}" for each in some),
                     "ID,Host\n" + "\n".join(f"{each['ID']},{each['Host']}" for each in some)):
            self.assertEqual([each["ID"] for each in some],
                             [each.uuid for each in servers(text)])

    def test_what_cannot_be_read(self):
        for text, words in (
                ("", "empty"), (" \n ", "empty"), ("pony", "not a uuid"),
                (f"{ONE} a b", "line 1"), (f"{ONE}\n\nx y\n", "line 3"), ("[1]", "entry 1"),
                (f'["{ONE}", ', "ends in the middle"), ("[{]", "not valid JSON"),
                ('[{"Name": "x"}]', "not a uuid"), ("{", "not valid JSON"),
                (f'ID,Host\n{ONE},a\npony,b\n', "line 3"), ('{"ID": 5}', "entry 1"),
                (json.dumps([LONG])[:-3], "not valid JSON"), (f'["{ONE}"] x', "not valid JSON"),
                (f'["{ONE}"]]', "not valid JSON"), (f'["{ONE}"] [', "middle of an array"),
                ("[" * 200_000, "recursion"), (f"[{'9' * 5000}]", "digits"),
                ("x" * 200_000, "field limit"), (f"ID,Host\n{ONE},{'x' * 200_000}", "field limit"),
                ):
            error = self.assertRaises(exception.InvalidInput, servers, text)
            self.assertIn(words, error.text, text)
            self.assertIn("list", error.text)


class OtherListsTest(base.TestCase):

    def test_migrations(self):
        record = {"Id": 7, "UUID": TWO, "Source Node": "a", "Dest Node": "b",
                  "Status": "confirmed", "Server UUID": ONE, "Type": "resize"}
        for text in (json.dumps([record]), ",".join(record) + "\n" + ",".join(
                map(str, record.values()))):
            self.assertEqual([Migration(TWO, ONE, "confirmed")],
                             list(listings.migrations(io.StringIO(text), "list")))
        api = {"migrations": [{"uuid": TWO, "instance_uuid": ONE, "status": "running"}]}
        self.assertEqual([Migration(TWO, ONE, "running")], list(listings.migrations(
            io.StringIO(json.dumps(api)), "list")))
        self.assertRaises(exception.InvalidInput, list, listings.migrations(
            io.StringIO(f"{ONE}\n"), "list"))

    def test_migrations_without_uuid(self):
        # As the command line client lists them by default.
        error = self.assertRaises(exception.InvalidInput, lambda: list(listings.migrations(
            io.StringIO(json.dumps([{"Server UUID": ONE, "Status": "done"}])), "list")))
        self.assertIn("--os-compute-api-version 2.59", error.text)

    def test_services(self):
        services = [{"ID": 1, "Binary": "nova-conductor", "Host": "ctl"},
                    {"ID": 2, "Binary": "nova-compute", "Host": "cmp1"}]
        hypervisors = [{"ID": ONE, "Hypervisor Hostname": "cmp1.org", "Host IP": "10.0.0.1"}]
        for text, names in ((json.dumps(services), {"cmp1"}),
                            (json.dumps(hypervisors), {ONE, "cmp1.org"}),
                            ("cmp1\ncmp2\n", {"cmp1", "cmp2"}),
                            ("ID,Binary,Host\n1,nova-compute,cmp1\n", {"cmp1"})):
            self.assertEqual(names, set(listings.services(io.StringIO(text), "list")))
        self.assertRaises(exception.InvalidInput, list, listings.services(
            io.StringIO('[{"State": "up"}]'), "list"))


class TableTest(base.TestCase):

    def test_each_is_found_and_no_other(self):
        # Close together, as no random ones are.
        uuids = [f"00000000-0000-0000-{high:04x}-{low:012x}"
                 for high in (0, 1, 0xffff) for low in (0, 1, 2, 2 ** 48 - 1)]
        some = [Server(uuid, f"host {number % 3}", None if number % 2 else "ACTIVE")
                for number, uuid in enumerate(uuids)]
        table = Servers([*some[::-1], Server(uuids[3], "last", "ERROR")])
        self.assertEqual(len(uuids), len(table))
        for each in some:
            wanted = Server(uuids[3], "last", "ERROR") if each.uuid == uuids[3] else each
            self.assertEqual(wanted, table.get(table.find(each.uuid)))
        self.assertEqual(sorted(uuids), [each.uuid for each in table])
        self.assertIsNone(table.find("00000000-0000-0000-0000-000000000003"))
        self.assertIsNone(table.find("ffffffff-0000-0000-0000-000000000000"))
        self.assertEqual({"host 0", "host 1", "host 2", "last"}, table.hosts())
        self.assertIs(False, table.have_status)

    def test_none(self):
        table = Servers([])
        self.assertEqual((0, None, []), (len(table), table.find(ONE), list(table)))
        self.assertEqual([], table.signed(5))

    def test_what_is_held(self):
        table = Servers([Server(ONE), Server(TWO)])
        for uuid in (ONE, TWO):
            self.assertEqual([], table.signed(77))
            table.sign(table.find(uuid), -5)
        self.assertEqual({ONE, TWO}, {each.uuid for each in table.signed(-5)})
