"""Reading of the warehouse: snapshots, queries, integrity checks."""
