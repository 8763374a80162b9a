import datetime as dt

import pytest

from crawlers.git.entries import find_day
from crawlers.git_posts import split_header


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("---\na: 1\n---\nText", "front", ("a: 1", "Text")),
        ("\n---\r\na: 1\r\n---\r\nText", "front", ("a: 1", "Text")),
        ("```toml\na = 1\n```\nText", "front", ("a = 1", "Text")),
        ("Text\n---\nMore", "front", ("", "Text\n---\nMore")),
        ("---\n" + "a\n" * 300 + "---\nText", "front", ("", "---\n" + "a\n" * 300 + "---\nText")),
        ("PEP: 1\nTitle: T\n\nText", "mail", ("PEP: 1\nTitle: T", "Text")),
        ("---\na: 1\n---\nText", "none", ("", "---\na: 1\n---\nText")),
        ("", "front", ("", "")),
        ('{"a": 1}\n\nText', "front", ('{"a": 1}', "\nText")),
        ('{"a": 1} is an object.', "front", ("", '{"a": 1} is an object.')),
        ("{% include x %}\nText", "front", ("", "{% include x %}\nText")),
        ("{" + "\n" * 300 + "}\nText", "front", ("", "{" + "\n" * 300 + "}\nText")),
        ('{"a":' * 10**5, "front", ("", '{"a":' * 10**5)),
    ],
)
def test_headers(text: str, kind: str, expected: tuple[str, str]) -> None:
    assert split_header(text, kind) == expected


def test_days() -> None:
    assert find_day("2025-02-03T23:00:00Z") == dt.date(2025, 2, 3)
    assert find_day("2026/05/18/slug") == dt.date(2026, 5, 18)
    assert find_day("2025-02-03 23:00 -0500") == dt.date(2025, 2, 3)
    assert find_day("Mon, 3 Feb 2025 10:00 IST") == dt.date(2025, 2, 3)
    assert find_day("31 February 2025") is find_day("3 Feb 9999") is None
    assert find_day("12025-02-03") is find_day("2025-02-31") is find_day("soon") is None
