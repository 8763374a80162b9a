"""Extras: folders that can be deleted without a change to any other code.

An extra may import any room. No room imports an extra: rooms find the extras by ``REGISTERED``.
A name whose folder is missing is skipped.
"""

REGISTERED = ("lake",)
