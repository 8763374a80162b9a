"""Deployment of tidemark on a Prefect server, a bare machine or containers."""
