"""Checks of this repository's own text, run by ``make check``; no part of what is installed.

``python -m tools.house`` runs all checks. ``python -m tools.figures`` prints sizes and coupling,
which nothing limits. A check is a module with a function ``faults()``, listed in ``house.CHECKS``.
"""
