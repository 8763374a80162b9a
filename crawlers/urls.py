"""Addresses as they are sent, so that what is checked is what is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import requests

from core.errors import SourceChanged

_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalise(url: str, params: Mapping[str, str | int] | None = None) -> str:
    """Return a URL with its query, in sorted order, exactly as it will be sent.

    Raises:
        SourceChanged: no URL can be made of it.
    """
    try:
        query = sorted((params or {}).items())
        return str(requests.Request("GET", url, params=query).prepare().url)
    except (requests.RequestException, ValueError) as error:
        raise SourceChanged(f"{url!r} with {dict(params or {})!r} makes no URL: {error}") from error


def follow(url: str, location: str) -> str:
    """Return where a Location header leads, normalised.

    Raises:
        SourceChanged: nowhere.
    """
    try:
        return normalise(urljoin(url, location))
    except ValueError as error:
        raise SourceChanged(f"{url} redirects to {location!r}, which is no URL") from error


def place_of_url(url: str) -> tuple[str, int] | None:
    """Return host and port; None for no plain web address."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.hostname, port or 0


def host_of_url(url: str) -> str | None:
    """Return ``name`` or, of an unusual port, ``name:port``; None for no plain web address."""
    place = place_of_url(url)
    if place is None:
        return None
    host, port = place
    return host if port == _DEFAULT_PORTS[urlsplit(url).scheme] else f"{host}:{port}"


def origin_of(url: str) -> str:
    """Return scheme, host and port: who gets what is meant for this address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_sendable(value: str) -> bool:
    """Whether a header's value stays on its line, in characters that HTTP allows."""
    return value.isascii() and value.isprintable() and value == value.strip()
