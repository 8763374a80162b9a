"""Answers to forecasting questions: prompts, probabilities of options, and choices in responses."""
