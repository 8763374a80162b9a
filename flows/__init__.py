"""Prefect flows: monthly, backfill, forecast, scylla, work, report; and the demo."""

from core.plugins import import_parts

for part in import_parts("spans"):
    part.export_spans()  # before Prefect begins the span of a flow run
