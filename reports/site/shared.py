"""Views that are computed once for all queries of a connection, as temporary tables.

Views of the snapshot that read such a view are made again in the temporary schema, so that they
read the table. A temporary object is found before that of the same name in the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

_DEFINITIONS = """
    select view_name, 'view ' || view_name || ' as ', sql[position(' AS ' in sql) + 4:]
    from duckdb_views()
    where not internal and not temporary
    union all
    select
        function_name,
        format('macro {}({}) as table ', function_name, array_to_string(parameters, ', ')),
        macro_definition
    from duckdb_functions()
    where function_type = 'table_macro' and not internal
"""
_READ = re.compile(r"\b(?:from|join)\s+\(*(?:(?:internal|main)\.)?(\w+)", re.IGNORECASE)


class Shared:
    """The views of a snapshot, some of which are computed when a query first reads them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, views: Sequence[str]) -> None:
        self._connection, self._views = connection, views
        rows = connection.execute(_DEFINITIONS).fetchall()
        self._definitions = {name: (head, body) for name, head, body in rows}
        self._is_copied: dict[str, bool] = {}

    def prepared(self, sql: str) -> str:
        """Return a query that reads the copies, which are made if they are missing."""
        copies = self._copies_read(sql)
        if not copies:
            return sql
        return re.sub(rf"\b(?:internal|main)\.({'|'.join(copies)})\b", r"\1", sql)

    def _copies_read(self, sql: str) -> list[str]:
        return [name for name in dict.fromkeys(_READ.findall(sql)) if self._is_copy(name)]

    def _is_copy(self, name: str) -> bool:
        """Return True if a view is, or reads, a view that is computed once; copy it before."""
        if name not in self._is_copied:
            self._is_copied[name] = name in self._definitions and self._copy(name)
        return self._is_copied[name]

    def _copy(self, name: str) -> bool:
        head, body = self._definitions[name]
        if name in self._views:
            head = f"table {name} as "
        elif not self._copies_read(body):
            return False
        try:
            self._connection.execute(f"create temp {head}{self.prepared(body)}")
        except duckdb.Error:  # the query says why
            return False
        return True
