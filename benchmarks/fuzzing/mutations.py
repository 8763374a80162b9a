"""Mutations of responses: odd values in JSON, damaged markup, archives and bytes; all seeded."""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import random
import re
import tarfile
import zlib
from collections.abc import Sequence
from typing import Any

RAW = {  # text that ``json.dumps`` does not write, by the string that stands for it
    "@digits": "9" * 5000, "@minus": "-" + "9" * 5000, "@float": "1e999", "@tiny": "1e-999",
    "@nan": "NaN", "@inf": "-Infinity", "@zero": "-0", "@deep": "[" * 3000 + "]" * 3000,
    "@high": '"\\ud800"', "@low": '"a\\udfff\\ud800b"', "@pair": '"\\ud83d\\ude00"',
}  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 10**15, 2**31, 2**63, 2**64, 253402300800, 1e308, -1e308,
    "", " ", "0", "-1", "9" * 5000, "²", "١٢", "1e5", "nan", "\0", "a\0b", "\ufeff", "\u202e\u2028",
    "x" * 70_000, "<b>" * 3000, "&#x110000;&#0;&bogus;", "../../etc", "//evil.test/x", "http://[::1",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0000-00-00", "2024-02-30T00:00:00Z",
    "2024-03-15T12:00:00Z", "2024-03-15", "2024-W11-3", "2024-03-15T12:00:00", "1700000000",
    [], {}, [[]], [{}], {"": {}}, [None] * 1000, [[[[[["x"]]]]]], {"id": {"id": []}},
    *RAW,
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp037", "utf-7")
NAMES = (b"utf-16", b"UTF-7", b"ebcdic-cp-us", b"no-such-code", b"x" * 300, b"ISO-8859-1", b"")
BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM '
    b'"file:///etc/passwd"><!ENTITY d "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)

Grafts = list[tuple[str, Any]]  # (key, value) pairs of recorded responses


def pairs_of(value: Any) -> Grafts:
    """Return all keys of objects within a JSON value, with their values."""
    return [(key, holder[key]) for holder, key in _places([value]) if isinstance(key, str)]


def mutate(body: bytes, rng: random.Random, grafts: Grafts) -> bytes:
    """Return a changed body: mostly within its format, sometimes with damaged bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if rng.random() < 0.1:
            body = _damage(body, rng)
        elif body[:2] == b"\x1f\x8b":
            body = _gzip(body, rng)
        elif body[:3] == b"BZh":
            body = _bzip2(body, rng)
        elif body.lstrip()[:1] in (b"{", b"["):
            body = _json(body, rng, grafts)
        else:
            body = (_markup if body.lstrip()[:1] == b"<" else _text)(body, rng)
    return body


def odd_header(value: str, rng: random.Random) -> str:
    """Return an odd value for a header."""
    return rng.choice(
        ("", "0", "-1", "x", "²", "١٢", "9" * 5000, "1e9", "10", value * 2, value[:-1])
    )


def _json(body: bytes, rng: random.Random, grafts: Grafts) -> bytes:
    """Change one value of a JSON document, or damage bytes that are no JSON."""
    try:
        whole = [json.loads(body)]
    except (ValueError, RecursionError):
        return _damage(body, rng)
    places = _places(whole)
    holder, key = rng.choice(places)
    if grafts and rng.random() < 0.15:
        key, value = rng.choice(grafts)
        same = [place for place, name in places if name == key]
        if same:
            rng.choice(same)[key] = copy.deepcopy(value)
    elif rng.random() < 0.5:
        holder[key] = rng.choice(ODD)
    else:
        _rearrange(holder, key, places, rng)
    text = json.dumps(whole[0] if whole else None)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


Place = tuple[Any, Any]  # list or object, and index or key of a value in it


def _rearrange(holder: Any, key: Any, places: Sequence[Place], rng: random.Random) -> None:
    """Delete, repeat, add, copy or wrap a value, chosen at random."""
    change, value = rng.randrange(5), holder[key]
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder, list):
        holder[key:key] = [value] * rng.choice((1, 1, 200))
    elif change == 2 and isinstance(holder, dict):
        holder[rng.choice(("extra", "id", "error", "items", "next", f"{key}s"))] = value
    elif change == 3:
        other, name = rng.choice(places)
        holder[key] = copy.deepcopy(other[name])
    else:
        holder[key] = rng.choice(([value], {"value": value}, str(value)))


def _places(whole: list[Any]) -> list[Place]:
    """Return the places of all values in a list, at any depth."""
    found: list[Place] = []
    left: list[Any] = [whole]
    while left:
        each = left.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        found += [(each, key) for key in keys]
        left += [each[key] for key in keys if isinstance(each[key], dict | list)]
    return found


_TOKEN = re.compile(rb"<[^<>]*>|[^<>]+")
_VALUE = re.compile(rb'"[^"<>]*"|(?<=>)[^<>]+')


def _markup(body: bytes, rng: random.Random) -> bytes:
    """Change a tag, a value or the declaration of XML or HTML."""
    change = rng.randrange(7)
    tokens = _TOKEN.findall(body) or [b"<a>"]
    place = rng.randrange(len(tokens))
    if change == 0:
        declared = b'<?xml version="1.0" encoding="' + rng.choice(NAMES) + b'"?>'
        return declared + re.sub(rb"^\s*<\?xml[^>]*>", b"", body)
    if change == 1:
        return BOMB + re.sub(rb"^\s*<\?xml[^>]*>", b"", body).replace(b">", b">&d;&c;", 3)
    if change == 2:
        del tokens[place]
    elif change == 3:
        tokens[place:place] = [tokens[place]] * rng.choice((1, 2, 500))
    elif change == 4:
        tokens[place] = tokens[rng.randrange(len(tokens))]
    else:
        values = list(_VALUE.finditer(body))
        if not values:
            return _damage(body, rng)
        found = rng.choice(values)
        odd = str(rng.choice(ODD)).encode("utf-8", "replace").replace(b'"', b"")
        odd = b'"' + odd + b'"' if found[0].startswith(b'"') else odd
        return body[: found.start()] + odd + body[found.end() :]
    return b"".join(tokens)


def _text(body: bytes, rng: random.Random) -> bytes:
    lines = body.split(b"\n")
    place = rng.randrange(len(lines))
    cells = lines[place].split(b"\t")
    cells[rng.randrange(len(cells))] = str(rng.choice(ODD)).encode("utf-8", "replace")
    lines[place] = b"\t".join(cells)
    return b"\n".join(lines)


def _gzip(body: bytes, rng: random.Random) -> bytes:
    """Change what is inside a gzip file: an archive, or lines."""
    try:
        inner = zlib.decompressobj(wbits=31).decompress(body, 2**22)
    except zlib.error:
        return _damage(body, rng)
    if inner[257:262] == b"ustar":
        inner = _tar(inner, rng)
    else:
        inner = _text(inner, rng) if rng.random() < 0.3 else _json_line(inner, rng)
    return gzip.compress(inner, 1, mtime=0)


def _bzip2(body: bytes, rng: random.Random) -> bytes:
    try:
        return bz2.compress(_text(bz2.decompress(body), rng), 1)
    except (OSError, ValueError):
        return _damage(body, rng)


def _json_line(inner: bytes, rng: random.Random) -> bytes:
    lines = inner.split(b"\n")
    place = rng.randrange(len(lines))
    lines[place] = _json(lines[place], rng, [])
    return b"\n".join(lines)


def _tar(inner: bytes, rng: random.Random) -> bytes:
    """Change contents, names and types of files in an archive."""
    packed = io.BytesIO()
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(inner)) as old,
            tarfile.open(fileobj=packed, mode="w") as new,
        ):
            for member in old.getmembers():
                file = old.extractfile(member) if member.isreg() else None
                data = file.read() if file else b""
                if rng.random() < 0.5:
                    data = rng.choice((_damage, _text))(data or b"x", rng)
                    member.name = rng.choice(
                        (member.name, "../x.tex", "a\0b.tex", "x.tex", "é" * 90)
                    )
                    member.type = rng.choice((member.type, tarfile.SYMTYPE, tarfile.FIFOTYPE))
                    member.linkname = "/etc/passwd"
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
    except (tarfile.TarError, ValueError, OSError):
        return _damage(inner, rng)
    return packed.getvalue()


def _damage(body: bytes, rng: random.Random) -> bytes:
    """Cut, overwrite, repeat, encode or replace bytes, chosen at random."""
    change, place = rng.randrange(8), rng.randrange(len(body) + 1)
    if change == 0:
        return body[:place]
    if change == 1:
        return body[:place] + rng.randbytes(rng.choice((1, 4, 100))) + body[place + 1 :]
    if change == 2:
        return body[:place] + b"\0" + body[place:]
    if change == 3:
        return body.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")
    if change == 4:
        return rng.choice((b"", b"null", b"0", b'"x"', b"[]", b"{}", b"<html></html>", b"9" * 5000))
    if change == 5:
        return body + body
    if change == 6:
        return gzip.compress(body, 1, mtime=0)
    return body[:place] + b"\xff\xfe\xed\xa0\x80" + body[place:]
