"""Sources of forecasting questions that are read in a browser: Good Judgment Open."""
