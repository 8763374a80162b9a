"""Puzzles of other domains than lists and sums: dates and networks, in a number of steps."""
