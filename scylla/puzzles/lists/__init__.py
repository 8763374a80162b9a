"""Puzzles about the numbers of a list."""
