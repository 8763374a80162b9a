"""Differences between the texts of months."""
