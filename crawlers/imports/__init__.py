"""Imports of users' own files as sealed partitions."""
