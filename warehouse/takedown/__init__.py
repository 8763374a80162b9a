"""Takedown: delete rows of documents from the database and the releases."""
