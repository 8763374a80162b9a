"""Checks of the source code that ``make check`` runs, besides those of other programs."""
