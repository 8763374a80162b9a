"""Prefect flows: monthly, backfill, forecast, scylla, work, report; and the demo."""

from tasks.prefect.tracing import export_spans

export_spans()  # before Prefect begins the span of a flow run
