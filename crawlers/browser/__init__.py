"""Chromium as a fetcher of pages that are filled in by JavaScript."""
