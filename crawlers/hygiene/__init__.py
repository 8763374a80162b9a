"""Hygiene: what a whole month of a source tells of its documents, after each was cleaned by itself.

``pipeline`` puts the stages together; every other module is one of them. All of them stream, and
what they keep in memory is bounded: about 1 kB a document, whatever its length. Nothing depends
on the order in which documents come, on the process or on the platform.
"""
