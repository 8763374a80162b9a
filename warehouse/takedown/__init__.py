"""Takedown: delete the rows of documents from the database."""
