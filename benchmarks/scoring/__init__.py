"""Scoring: models of known shapes, and the scorers that are compared."""
