"""Answers of others to forecasting questions, from files."""
