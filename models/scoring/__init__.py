"""Scoring: protocols, windows, batches, accounting, and the resulting losses."""
