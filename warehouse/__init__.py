"""The warehouse: per-chunk losses in DuckDB, and the views that compute figures from them.

Rules of this package: each ``.sql`` file creates one object and has its name
(``tables/<schema>/<table>.sql``, ``views/<mart>/<view>.sql`` with a ``.yml`` beside it). Python
binds parameters and never formats values into SQL. Views compute ratios; no table stores them. One
process writes its own file. Readers open published snapshots (docs/adr/0005-publishing.md).
"""
