"""Conversion to plain text from HTML, LaTeX, wikitext, READMEs and source code; its cleaning."""
