"""Limits and tokens of sites that all machines share through the Prefect server."""
