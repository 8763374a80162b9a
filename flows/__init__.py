"""Prefect flows, which the command line and the deployments run."""
