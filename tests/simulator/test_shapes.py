import datetime as dt
import gzip
import io
import json
import tarfile
from typing import Any

import pytest

from crawlers.web.fetcher import Fetched
from simulator.shapes import MAX_FIELDS, Difference, Shape, compare


def shape_of(*bodies: bytes | Any, **headers: str) -> Shape:
    shape = Shape()
    for body in bodies:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        shape.add(Fetched("http://site/", named, raw, dt.datetime.now(dt.UTC)))
    return shape


def differences(simulated: Shape, true: Shape) -> list[tuple[str, str]]:
    return [(each.path, each.what) for each in compare({"GET": simulated}, {"GET": true})]


def test_fields_are_found_by_path_and_no_value_is_kept() -> None:
    shape = shape_of({"items": [{"id": 7, "who": None}, {"id": 8, "who": "secret"}], "ok": True})
    assert {path: set(types) for path, types in shape.types.items()} == {
        "response": {"response"}, "$": {"object"}, "$.items": {"list"}, "$.items[]": {"object"},
        "$.items[].id": {"number"}, "$.items[].who": {"null", "text"}, "$.ok": {"boolean"},
    }  # fmt: skip
    assert "secret" not in str(shape)


def test_keys_that_are_ids_are_values() -> None:
    shape = shape_of({"pages": {"12": {"title": "a"}, "-1": {"title": "b"}, "tó": {}}})
    assert "$.pages.{}.title" in shape.types
    assert not any("12" in path or "tó" in path for path in shape.types)
    assert not shape.is_always("$.pages.{}.title")


def test_a_field_is_always_there_if_each_of_its_parents_has_it() -> None:
    shape = shape_of([{"a": 1, "b": [1, 2, 3]}, {"a": 2}], [])
    assert shape.is_always("$[].a")
    assert not shape.is_always("$[].b")
    assert shape.is_always("$[].b[]")
    assert not shape.is_always("$[]")  # one list is empty


def test_elements_and_attributes_of_xml_are_found_without_their_namespaces() -> None:
    feed = (
        b'<?xml version="1.0"?><f:feed xmlns:f="urn:f"><f:entry id="1"><f:name>A</f:name>'
        b"<f:name>B</f:name></f:entry><f:entry/></f:feed>"
    )
    shape = shape_of(feed)
    assert set(shape.types) == {
        "response", "/feed", "/feed/entry", "/feed/entry@id", "/feed/entry/name",
    }  # fmt: skip
    assert not shape.is_always("/feed/entry/name")
    assert shape.is_always("/feed/entry")


def test_a_page_is_its_selectors() -> None:
    shape = shape_of(
        b'<!DOCTYPE html><html><head><meta property="og:title" content="private"></head><body>'
        b'<article class="post wide"><time datetime="2024-01-01">then</time></article></body>'
    )
    found = {"article.post", "article.wide", "meta[property=og:title]", "time[datetime]"}
    assert found <= set(shape.types)
    assert not any("private" in path or "2024" in path for path in shape.types)


def test_other_bodies_are_what_they_are_packed_as() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO(b""))
    bodies = [buffer.getvalue(), gzip.compress(b"text"), b"%PDF-1.5", b"plain", b"\0\1", b"{broken"]
    assert [shape_of(body).types["body"] for body in bodies] == [
        {"gzip of tar"}, {"gzip"}, {"pdf"}, {"text"}, {"binary"}, {"text"},
    ]  # fmt: skip


def test_headers_of_interest_are_fields_too() -> None:
    shape = shape_of({}, content_type="application/json; charset=utf-8", etag='"v1"', date="now")
    assert shape.types["header content-type"] == {"application/json"}
    assert "header etag" in shape.types and "header date" not in shape.types


def test_a_missing_field_and_another_type_are_faults() -> None:
    simulated = shape_of({"id": 1, "time": 2, "note": "x"})
    found = differences(simulated, shape_of({"id": 1, "time": "2024", "more": 1}))
    assert found == [("$.time", "another type"), ("$.note", "missing"), ("$.more", "new")]
    faults = [each for each in compare({"": simulated}, {"": shape_of({})}) if each.is_fault]
    assert {each.path for each in faults} == {"$.id", "$.time", "$.note"}


def test_what_is_optional_or_null_or_within_something_absent_is_no_fault() -> None:
    simulated = shape_of({"a": {"b": 1}, "c": 1}, {"c": 1})
    assert differences(simulated, shape_of({"c": None})) == [("$.a", "not seen")]


def test_kinds_that_only_one_of_them_was_asked_are_told() -> None:
    found = list(compare({"GET /a": shape_of({})}, {"GET /b": shape_of({})}))
    assert [(each.kind, each.what) for each in found] == [
        ("GET /a", "not asked"), ("GET /b", "new"),
    ]  # fmt: skip
    assert not any(each.is_fault for each in found)


@pytest.mark.parametrize("what", ["missing", "another type"])
def test_a_fault_says_where_and_what(what: str) -> None:
    each = Difference("GET /items", "$.id", what, "number")
    assert each.is_fault and str(each) == f"GET /items: $.id is {what} (number)"


def test_an_answer_without_end_is_cut() -> None:
    shape = shape_of({f"k{number}": number for number in range(2 * MAX_FIELDS)})
    assert len(shape.types) == MAX_FIELDS
