"""Prefect flows: monthly, backfill, work, report."""

from core.plugins import import_parts

for part in import_parts("spans"):
    part.export_spans()  # before Prefect begins the span of a flow run
