"""The warehouse: per-chunk losses in DuckDB, and the views that turn them into figures.

Rules of this room: SQL lives in ``.sql`` files, one object a file, the path is the name
(``tables/<table>.sql``, ``views/<mart>/<view>.sql`` with a ``.yml`` beside it); Python binds
parameters and never formats values in; ratios are computed in views, never stored; one process
writes, on its own file, and readers open published snapshots (docs/adr/0005-publishing.md).
"""
