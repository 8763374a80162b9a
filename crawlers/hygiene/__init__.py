"""Hygiene: checks of cleaned documents that need a whole month of a source.

``pipeline`` runs the stages; the other modules implement them. All stages stream the documents, and
need about 1 kB of memory per document of any length. Results do not depend on the order of
documents, the process or the platform.
"""
