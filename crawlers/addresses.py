"""Which IP addresses are of the public internet."""

from __future__ import annotations

import ipaddress

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_EMBEDDING = ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32")  # 6to4, Teredo


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet's.

    Not: private, loopback, link-local, shared (CGNAT), unique local, multicast and reserved ones,
    nor such an address of version 4 within one of version 6. What is no address is not public.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        if found in _NAT64:
            inner = ipaddress.IPv4Address(found.packed[-4:])
        if inner is not None:
            return is_public(str(inner))
        if found.is_site_local or any(found in network for network in _EMBEDDING):
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


def is_private_address(host: str) -> bool:
    """Whether a host is given as an address that is not public; a name is to be looked up."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return not is_public(host)
