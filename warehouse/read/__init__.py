"""Reading of the warehouse: snapshots, queries, releases, integrity checks, handbook."""
