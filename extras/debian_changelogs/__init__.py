"""Changelogs of Debian packages, as dated texts for local use."""
