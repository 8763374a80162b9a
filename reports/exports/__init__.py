"""Exports of figures, and the folders and files that any export writes."""
