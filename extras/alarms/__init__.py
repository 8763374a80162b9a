"""Alarms of a Prefect server: a webhook is told of runs that failed, are late, or cannot start."""
