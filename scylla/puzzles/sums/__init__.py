"""Puzzles about sums of some numbers of a list."""
