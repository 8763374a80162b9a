import datetime as dt
import json

import pytest

from crawlers.web.times import read_time
from crawlers.web.values import MAX_DEPTH, load_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * 5000, None), ("-" + "9" * 5000, None), (str(2**63), None), ("1e999", None),
        (str(2**63 - 1), 2**63 - 1), (str(1 - 2**63), 1 - 2**63), ("NaN", None),
        ("0." + "3" * 5000, 1 / 3),
        ("[Infinity, -Infinity]", [None, None]), ('"\\ud800"', "\ufffd"), ('"\\uDFFFx"', "\ufffdx"),
        ('"\\ud83d\\ude00"', "\U0001f600"), ('"\\\\ud800"', "\\ud800"), ('"\ud800"', "\ufffd"),
        ('{"\\udc00": ["\\ud83d"]}', {"\ufffd": ["\ufffd"]}), ('"\\u0000"', "\0"),
    ],
)  # fmt: skip
def test_values_can_be_printed_and_encoded(text: str, value: object) -> None:
    found = load_json(text)
    assert found == (pytest.approx(value) if isinstance(value, float) else value)
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()


def test_bytes_are_utf_8_with_or_without_a_mark() -> None:
    assert load_json(b'\xef\xbb\xbf{"a": "\xc3\xa9"}') == load_json('{"a": "é"}') == {"a": "é"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b'"\xff"', b'"\xed\xa0\x80"', '"é"'.encode("utf-16"), b"[1,]", b"1 2"]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        load_json(data)


def test_depth_is_limited() -> None:
    assert repr(load_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)).startswith("[[")
    for depth in (MAX_DEPTH + 1, 10**6):
        for before, after in (("[", "]"), ('{"a":', "}")):
            with pytest.raises(ValueError, match="nested"):
                load_json(before * depth + "1" + after * depth)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("2024-03-01T12:00:00Z", dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)),
        ("2024-03-01", dt.datetime(2024, 3, 1, tzinfo=dt.UTC)),
        ("0001-01-01T00:00:00+14:00", None), ("9999-12-31T23:59:59-14:00", None),
        ("1699-12-31", None), ("2200-01-01", None), ("soon", None), (5, None), ([], None),
    ],
)  # fmt: skip
def test_times_are_in_utc_and_far_from_the_ends(value: object, found: dt.datetime | None) -> None:
    assert read_time(value, dt.UTC) == found


def test_a_time_without_a_zone_needs_one() -> None:
    assert read_time("2024-03-01T12:00:00") is None
