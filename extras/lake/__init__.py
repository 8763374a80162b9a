"""Copies of the snapshot for readers on other machines and other engines: Parquet, DuckLake."""
