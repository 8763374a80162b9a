"""Answers to forecasting questions: prompts, probabilities of the options, choices in a text."""
