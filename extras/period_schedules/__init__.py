"""Scheduled runs of sources by half-month and by week on a Prefect server."""
