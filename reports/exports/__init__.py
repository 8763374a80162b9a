"""Exports, a file each: figures, data sets, tasks and results in the formats of others."""
