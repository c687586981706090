# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation can be read by everyone, on a light and on a dark page."""

import pathlib
import re
from xml.etree import ElementTree

from tests import base

_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "source"
_SVG = "{http://www.w3.org/2000/svg}"
# WCAG 2.1, level AA, for text of ordinary size.
_CONTRAST = 4.5


def _luminance(color):
    digits = color[1:] if len(color) == 7 else "".join(each * 2 for each in color[1:])
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class PicturesTest(base.TestCase):

    def drawings(self):
        found = sorted((_DOCS / "images").glob("*.svg"))
        self.assertGreater(len(found), 5)
        return found

    def test_each_has_a_ground_of_its_own_that_its_text_stands_out_from(self):
        """A page in a dark theme does not shine through."""
        for path in self.drawings():
            root = ElementTree.parse(path).getroot()
            areas = root.findall(f"{_SVG}rect")
            self.assertEqual(root.get("viewBox").split()[2:],
                             [areas[0].get("width"), areas[0].get("height")], path.name)
            grounds = [each.get("fill").replace("white", "#ffffff") for each in areas
                       if each.get("fill") != "none"]
            texts = re.findall(r"fill:(#\w+)", root.find(f"{_SVG}style").text)
            self.assertTrue(texts, path.name)
            for ground in grounds:
                for text in texts:
                    self.assertGreaterEqual(_contrast(ground, text), _CONTRAST, path.name)

    def test_each_is_described_where_it_is_shown(self):
        shown = set()
        for page in _DOCS.glob("*.rst"):
            for name, rest in re.findall(
                    r"^\.\. image:: images/(\S+)\n((?:   .*\n)*)", page.read_text(), re.MULTILINE):
                self.assertRegex(rest, r":alt: \S+ \S+", f"{page.name}: {name}")
                shown.add(name)
        self.assertEqual({each.name for each in (_DOCS / "images").iterdir()}, shown)
