import pytest

from crawlers.text.code import find_readme, read_readme
from tests.crawlers.conftest import refused


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("see [the docs](https://a.b/c_(d))", "see the docs"),
        ("[![b](https://a.b/c.svg)](https://a.b)", ""), ("[![b][i]][l] text", "text"),
        ("`[a](b)` and [`f`](x)", "`[a](b)` and `f`"),
        ("a[0](1) is no link? it is one", "a0 is no link? it is one"),
        (r"\[not](a link)", r"\[not](a link)"), ("- [ ] to do", "- [ ] to do"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"), ("<https://a.b/c>", "https://a.b/c"),
    ],
)  # fmt: skip
def test_lines_of_markdown(line: str, expected: str) -> None:
    assert read_readme("README.md", line.encode()).strip() == expected


def test_links_of_markdown_go_over_lines_and_by_name() -> None:
    text = """[![b]][p] ![logo] [![Build
status](https://a.b/c.svg)](https://a.b)

See [the
docs](https://a.b/c), the [guide], [that] and `[guide]`. ```--flag``` here.

- [2025] a [b](c)

| a | b |
|---|:-:|
| 1 | 2 |

* * *

> [!NOTE]
> Care.

[b]: https://a.b/c.svg
[p]: https://a.b
[guide]: https://a.b "Guide"
[logo]: l.png
[^1]: A footnote."""
    assert read_readme("README.md", text.encode()) == (
        "See the\ndocs, the guide, [that] and `[guide]`. ```--flag``` here.\n\n- [2025] a b\n\n"
        "| a | b |\n| 1 | 2 |\n\n> Care.\n\n[^1]: A footnote."
    )


def test_restructured_text() -> None:
    text = """.. |Version| replace:: 3.10
.. |CI| image:: https://a.b/c.svg
   :target: https://a.b

+--------+-------+
| |CI|   | |CI|  |
+--------+-------+

Raw `inputs <https://a.b>`__ lie on `the
archive <https://a.b/c>`__ and `other
<https://a.b/d>`_. See `the docs`_, Python_ and class_, version |version|.

- an `item (for
  all) <https://a.b>`__

.. code-block:: python
   :linenos:

   x = `a`_ | b |CI| c

Run::

    $ a `b <c>`_

=====  =====
A      B
=====  =====

.. note::
   Care.

.. _Python: https://a.b
.. _the docs: https://a.b"""
    assert read_readme("README.rst", text.encode()) == (
        "Raw inputs lie on the\narchive and other. See the docs, Python and class_, version 3.10."
        "\n\n- an item (for\n  all)\n\n   x = `a`_ | b |CI| c\n\nRun::\n\n    $ a `b <c>`_\n\n"
        "A      B\n\n   Care."
    )


@pytest.mark.parametrize(
    "code", ['```py\nx = "[a](b) ![c](d)"\n\n\n[r]: y\n```', "```\n[a](b)\nnever closed"]
)
def test_code_is_left_alone(code: str) -> None:
    assert read_readme("README.md", code.encode()) == code


def test_tags_in_code_are_words() -> None:
    text = (
        "a `<br>` b<br>c ``&lt;``\n\n~~~html\n<p>&amp;</p>\n~~~\n<!-- d\n```\n<b>\n```\n-->e `<i>"
    )
    assert read_readme("README.md", text.encode()) == (
        "a `<br>` b\nc ``&lt;``\n\n~~~html\n<p>&amp;</p>\n~~~\ne `"
    )


def test_control_characters_and_html_do_not_survive() -> None:
    text = "a\u202eb\x07\n<script>x()</script><b onclick='y'>c</b>\n&lt;img src=z&gt;"
    assert read_readme("README.md", text.encode()) == "ab\nc"


@pytest.mark.parametrize(
    ("content", "reason"), [(b"a\0b", "binary"), ("é".encode("latin-1"), "parse_error")]
)
def test_what_is_no_text_is_refused(content: bytes, reason: str) -> None:
    with refused(reason):
        read_readme("README.md", content)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["README.rst", "readme.md", "a.py"], "readme.md"), (["README"], "README"),
        (["docs/README.md", "READMEs.md"], None), (["README.md", "readme.md"], "README.md"),
    ],
)  # fmt: skip
def test_which_file_is_the_readme(paths: list[str], expected: str | None) -> None:
    assert find_readme(paths) == expected


def test_a_long_replacement_is_not_put_in() -> None:
    text = ".. |a| replace:: " + "x" * 1000 + "\n\n|a| |a| |a|\n"
    assert read_readme("README.rst", text.encode()) == "|a| |a| |a|"
