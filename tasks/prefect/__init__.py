"""Prefect for tasks: fan-out, observation, artifacts, events, server access."""
