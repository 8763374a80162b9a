"""Hygiene: checks of cleaned documents that need a whole month of a source.

``pipeline`` runs the stages; every other module is one stage. All stages stream, in about 1 kB of
memory a document of any length. Results do not depend on document order, process or platform.
"""
