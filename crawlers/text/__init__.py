"""Conversion of HTML, LaTeX, wikitext, READMEs and code to plain text, and cleaning of texts."""
