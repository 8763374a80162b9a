"""Untrusted JSON in the responses of sites."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 100  # nesting of JSON; deeper values exhaust the stack of ``repr`` and ``json.dumps``
_MAX_DIGITS = 20  # characters of a 64-bit integer; Python refuses to parse very long integers
_MAX_INTEGER = 2**63  # larger ones fit into no column
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def load_json(data: bytes | str) -> Any:
    """Parse UTF-8 JSON (RFC 8259) into values that can be printed, encoded and compared.

    A number becomes None if it is not finite, or an integer of more than 64 bits. A surrogate
    without its partner becomes U+FFFD. Raise ValueError for invalid or deeply nested JSON.
    """
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_finite, parse_constant=lambda _name: None
        )
        _require_shallow(value)
        if _SURROGATE.search(text):
            # Encoding to UTF-16 joins pairs of surrogates; decoding replaces lone ones.
            units = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(units.decode("utf-16", "replace"))
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    return value


def _integer(digits: str) -> int | None:
    number = int(digits) if len(digits) <= _MAX_DIGITS else _MAX_INTEGER
    return number if abs(number) < _MAX_INTEGER else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _require_shallow(value: Any) -> None:
    """Raise ValueError if a value is nested too deeply; recursion would exhaust the stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        lists: list[Iterable[Any]] = [each for each in level if isinstance(each, list)]
        lists += [each.values() for each in level if isinstance(each, dict)]
        level = [child for each in lists for child in each]
        if not level:
            return
    raise ValueError(f"the JSON is nested more than {MAX_DEPTH} levels deep")
