"""Flows: one screen each, and the command line."""
