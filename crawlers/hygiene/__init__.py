"""Hygiene: checks of cleaned documents that need a whole month of a source.

``pipeline`` runs the stages; the other modules implement them. All stages stream the documents, and
together need about 1 kB of memory per document, whatever its length. Results do not depend on the
order of documents, the process or the platform.
"""
