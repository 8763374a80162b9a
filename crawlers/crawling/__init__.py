"""Crawls of months: run, checked, counted, recorded, and undone."""
