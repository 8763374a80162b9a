"""Exports in the formats of other projects, a file each."""
