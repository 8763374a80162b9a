"""Prefect flows of the command line and of the deployments."""
