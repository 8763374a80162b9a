"""Redaction: placeholders such as ``[EMAIL]`` replace personal and secret data; off by default.

Bits per byte of redacted texts are not comparable with those of the original texts. Strings that
only look like such data are kept: version and section numbers, dates, ISBNs, decimal numbers,
slices (``[1::2]``) and scopes (``a::b``) in code. The time is linear in the text's length.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable

# Top-level domains. A longer list would match names in code (``query@key.transpose``).
_TOP_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|name|dev|app|pro|online|site|tech|xyz|cloud|email|live"
    "|news|blog|shop|store|world|agency|company|group|academy|science|university|example|test"
    "|[a-z]{2}"
)
_EMAIL = re.compile(
    rf"(?<![\w.%+-])[\w.%+-]{{1,64}}@(?:[a-z0-9-]{{1,63}}\.){{1,8}}(?:{_TOP_DOMAINS})"
    r"(?![\w(\[-]|\.\w)",
    re.IGNORECASE,
)
_RETINA = re.compile(r"@\dx\.", re.IGNORECASE)  # image@2x.jp is a file name

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"(?<![\w.])(?<![A-Za-z]/)(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.\d)")
_VERSION = re.compile(
    r"(?:\b(?:versions?|ver|v|release|rev|section|sect?|chapter|table|figure|fig|oid)\.?|§|[=<>~^]=?)"
    r"\s{0,3}\Z",
    re.IGNORECASE,
)
_BEFORE = 20  # number of characters before a match in which ``_VERSION`` is searched
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE)
_MIN_IPV6_GROUPS = 3  # minimum groups of an IPv6 address; ``[1::2]`` is a slice in code

_PHONE = re.compile(
    r"(?<![\w.+-])(?:"
    r"\+[1-9]\d{0,2}(?:[ .-]?\(\d{1,4}\))?(?:[ .-]?\d{2,4}){2,6}"  # international
    r"|(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-.])\d{3}[-.]\d{4}"  # North American
    r"|(?<=tel: )\+?[\d ()/-]{6,20}\d|(?<=tel\. )[\d ()/-]{6,20}\d"
    r"|(?<=phone: )[\d ()/-]{6,20}\d|(?<=fax: )[\d ()/-]{6,20}\d"
    r")(?![\w-]|\.\d)",
    re.IGNORECASE,
)
_MIN_PHONE_DIGITS = 7
_MAX_PHONE_DIGITS = 15
_MIN_UNPARTED = 10  # minimum digits of an international number without separators

_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KNOWN_SECRET = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}"  # Amazon
    r"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|glpat-[A-Za-z0-9_-]{20,64}|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,250}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,250}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}|sk-[A-Za-z0-9_-]{20,250}"
    r"|pypi-[A-Za-z0-9_-]{50,250}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,1000}"  # JWT
    r")(?![A-Za-z0-9_-])"
)
_NAMED_SECRET = re.compile(
    r"(?P<name>(?:api[_-]?key|access[_-]?key|secret[_-]?key|secret|token|passw(?:or)?d|auth)"
    r"[\"']?\s{0,3}(?:=|:|=>)\s{0,3}[\"']?)(?P<value>[A-Za-z0-9+/_=-]{16,256})"
    r"(?![A-Za-z0-9+/_=(-])",  # a value before ``(`` is a function's name, no secret
    re.IGNORECASE,
)
_MIN_ENTROPY = 3.5  # minimum bits per character of a secret; English words have at most 3


def redact(text: str) -> tuple[str, dict[str, int]]:
    """Return a text with placeholders, and the number of placeholders of each kind."""
    counts: Counter[str] = Counter()
    text = _redact_key_blocks(text, counts)
    for pattern, replace in _STEPS:
        text = pattern.sub(lambda match: replace(match, counts), text)  # noqa: B023 - used at once
    return text, dict(sorted(counts.items()))


def _redact_key_blocks(text: str, counts: Counter[str]) -> str:
    """Replace each private key block; one without an end is cut to the end of the text."""
    kept = []
    position = 0
    while begin := _KEY_BLOCK.search(text, position):
        end = _KEY_END.search(text, begin.end())
        kept += [text[position : begin.start()], _placeholder("secret", counts)]
        position = end.end() if end else len(text)
    return "".join(kept) + text[position:]


def _placeholder(kind: str, counts: Counter[str]) -> str:
    counts[kind] += 1
    return f"[{kind.upper()}]"


def _known_secret(match: re.Match[str], counts: Counter[str]) -> str:
    return _placeholder("secret", counts)


def _named_secret(match: re.Match[str], counts: Counter[str]) -> str:
    """Replace the value after a name such as ``api_key=``, unless it looks like a word."""
    value = match["value"]
    is_mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    if not is_mixed or _entropy(value) < _MIN_ENTROPY:
        return match[0]
    return match["name"] + _placeholder("secret", counts)


def _entropy(value: str) -> float:
    """Return the entropy of the character frequencies, in bits per character."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _email(match: re.Match[str], counts: Counter[str]) -> str:
    return match[0] if _RETINA.search(match[0]) else _placeholder("email", counts)


def _ipv4(match: re.Match[str], counts: Counter[str]) -> str:
    """Replace an IPv4 address, unless it looks like a version or section number."""
    before = match.string[max(match.start() - _BEFORE, 0) : match.start()]
    # Four numbers of one digit (1.2.3.4) are a version or a section number.
    if all(len(part) == 1 for part in match[0].split(".")) or _VERSION.search(before):
        return match[0]
    return _placeholder("ipv4", counts)


def _ipv6(match: re.Match[str], counts: Counter[str]) -> str:
    """Replace an IPv6 address, unless it is invalid, or looks like a slice or scope in code."""
    groups = [group for group in match[0].split(":") if group]
    try:
        ipaddress.IPv6Address(match[0])
    except ValueError:
        return match[0]
    if len(groups) < _MIN_IPV6_GROUPS or not any(c.isdigit() for c in match[0]):
        return match[0]
    return _placeholder("ipv6", counts)


def _phone(match: re.Match[str], counts: Counter[str]) -> str:
    """Replace a phone number, unless it is a decimal number, or has too few or too many digits."""
    number = match[0]
    num_digits = sum(c.isdigit() for c in number)
    is_decimal = number.count(".") == 1 and not any(c in " -()" for c in number)
    is_unparted = number.lstrip("+").isdigit()
    least = _MIN_UNPARTED if is_unparted and number.startswith("+") else _MIN_PHONE_DIGITS
    if is_decimal or not least <= num_digits <= _MAX_PHONE_DIGITS:
        return number
    return _placeholder("phone", counts)


_Replace = Callable[[re.Match[str], Counter[str]], str]
_STEPS: tuple[tuple[re.Pattern[str], _Replace], ...] = (
    (_KNOWN_SECRET, _known_secret),
    (_NAMED_SECRET, _named_secret),
    (_EMAIL, _email),
    (_IPV6, _ipv6),
    (_IPV4, _ipv4),
    (_PHONE, _phone),
)
