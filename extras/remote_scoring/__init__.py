"""Losses from servers that return the log-probabilities of a prompt."""
