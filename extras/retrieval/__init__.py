"""Retrieval for forecasting: questions with documents from before their opening."""
