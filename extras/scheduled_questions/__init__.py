"""Scheduled runs on a Prefect server in which models answer questions and solve puzzles."""
