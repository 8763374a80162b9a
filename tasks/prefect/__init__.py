"""Use of Prefect by tasks: concurrent runs, logs, artifacts, events, server access."""
