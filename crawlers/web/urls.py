"""Functions on URLs: normalisation, hosts, and tests for private addresses."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import requests

from core.errors import SourceChanged

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")


def normalise(url: str, params: Mapping[str, str | int] | None = None) -> str:
    """Return a URL as it is sent, with a sorted query; raise SourceChanged if it is invalid."""
    try:
        query = sorted((params or {}).items())
        return str(requests.Request("GET", url, params=query).prepare().url)
    except (requests.RequestException, ValueError) as error:
        raise SourceChanged(f"{url!r} with {dict(params or {})!r} makes no URL: {error}") from error


def follow(url: str, location: str) -> str:
    """Return the normalised target of a link or Location header, or raise SourceChanged."""
    try:
        return normalise(urljoin(url, location))
    except ValueError as error:
        raise SourceChanged(f"{url} leads to {location!r}, which is no URL") from error


def place_of_url(url: str) -> tuple[str, int] | None:
    """Return host and port of a URL; None for an invalid web address."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.hostname, port or 0


def host_of_url(url: str) -> str | None:
    """Return ``name``, or ``name:port`` for a non-default port; None for an invalid web address."""
    place = place_of_url(url)
    if place is None:
        return None
    host, port = place
    return host if port == _DEFAULT_PORTS[urlsplit(url).scheme] else f"{host}:{port}"


def is_covered(url: str, pattern: str) -> bool:
    """Return True if a URL's path equals a pattern or, if that ends in ``/*``, is below it."""
    # A path below a pattern must consist of plain names. So dots (``..``), empty names and percent
    # signs, which a server may resolve to another path, are not covered.
    path = urlsplit(url).path
    if not pattern.endswith("/*"):
        return path == pattern
    return path.startswith(pattern[:-1]) and _PLAIN_PATH.fullmatch(path) is not None


def is_loopback(url: str) -> bool:
    """Return True if a URL leads to this machine."""
    host, _ = place_of_url(url) or ("", 0)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL; credentials are sent only within one origin."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_sendable(value: str) -> bool:
    """Return True if a header value is printable ASCII, without line breaks or outer spaces."""
    return value.isascii() and value.isprintable() and value == value.strip()


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # the only IPv6 addresses of the internet
# Blocks of IANA's special-purpose registries that ``is_global`` does not know, in whole or
# in part, and an address that a cloud has inside its machines.
_SPECIAL = [
    ipaddress.ip_network(block)
    for block in (
        "168.63.129.16/32",  # the agent of a virtual machine's host, at Azure
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # former relays of 6to4
        "2001::/23",  # protocol assignments, Teredo among them
        "2002::/16",  # 6to4, which may lead to any IPv4 address
        "3fff::/20",  # documentation (RFC 9637)
    )
]


def is_public(address: str) -> bool:
    """Return True if an IP address is on the public internet.

    Return False for private, loopback, link-local, shared (CGNAT), unique local, multicast,
    reserved and special-purpose addresses, also for IPv4 addresses within IPv6. Return False for an
    invalid address.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        is_nat64 = found in _NAT64
        inner = ipaddress.IPv4Address(found.packed[-4:]) if is_nat64 else found.ipv4_mapped
        if inner:
            return is_public(str(inner))
        if found not in _GLOBAL_UNICAST:
            return False
    is_special = any(found in block for block in _SPECIAL)
    return found.is_global and not (is_special or found.is_multicast or found.is_reserved)


def is_private_address(host: str) -> bool:
    """Return True if a host is an address that is not public, or is named ``localhost``.

    An IPv4 address may be spelled as resolvers read it: ``2130706433``, ``0177.0.0.1``, ``127.1``.
    Return False for other host names.
    """
    host = host.partition("%")[0].rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        address = _spelled_address(host)
        return address is not None and not is_public(address)
    return not is_public(host)


def _spelled_address(host: str) -> str | None:
    """Return the IPv4 address of a host of one to four numbers; None for a name."""
    if _NUMBERS.fullmatch(host) is None:
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")
