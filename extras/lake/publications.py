"""The kinds of copies that ``tidemark publish --to KIND:PLACE`` can write."""

from __future__ import annotations

from extras.lake.ducklake import copy_to_ducklake
from extras.lake.parquet import copy_to_parquet

KINDS = {"ducklake": copy_to_ducklake, "parquet": copy_to_parquet}
