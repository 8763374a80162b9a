"""Shared definitions for all packages of the repository.

The package contains record schemas, months, settings, errors, storage, and the paths of corpus and
loss files. Package core imports no other package of tidemark and does no I/O at import. Only its
modules ``settings`` and ``environment`` read environment variables.
"""
