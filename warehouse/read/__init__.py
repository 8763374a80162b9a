"""Reading of the warehouse: snapshots, releases, checks, and the handbook."""
