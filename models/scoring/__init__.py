"""Scoring: protocols, windows, batches, counts of bytes and characters, and losses."""
