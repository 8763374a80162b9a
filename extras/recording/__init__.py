"""Recordings of the responses of a source's sites, for bug reports and tests."""
