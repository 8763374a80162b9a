"""Scoring of models' cells on the nodes of a Ray cluster."""
