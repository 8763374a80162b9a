"""The tables and views that a statement reads: a test computes no more than these."""

import functools
import re

from warehouse.database.schema import list_tables, list_views, read_view_code


@functools.cache
def all_read_by(name: str) -> frozenset[str]:
    """Return a table or view, and all that it reads, directly or through other views."""
    if name not in list_views():
        return frozenset([name])
    reads = read_view_code(list_views()[name]).reads - {name}
    return frozenset([name]).union(*map(all_read_by, reads))


def relations_of(sql: str) -> frozenset[str]:
    """Return the tables and views that a statement names, and all that these read."""
    known = list_views().keys() | list_tables().keys()
    named = known & set(re.findall(r"\w+", sql))
    return frozenset[str]().union(*map(all_read_by, named))
