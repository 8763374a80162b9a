"""Benchmarks of orchestration: a Prefect server under load and during an outage."""
