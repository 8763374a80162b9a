"""Deployment of tidemark on a Prefect server, without containers or with Docker Compose."""
