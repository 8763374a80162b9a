"""The warehouse: losses per chunk in DuckDB, and the views that compute figures from losses.

Rules of this package: each ``.sql`` file creates one table or view, and both have the same name
(``tables/<schema>/<table>.sql``, ``views/<mart>/<view>.sql`` with a description in ``.yml``).
Python binds parameters and never formats values into SQL. Views compute ratios; no table stores
ratios. Readers open published snapshots, never the file that is written
(docs/adr/0005-publishing.md).
"""
