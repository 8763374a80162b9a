"""Sets and start tokens of Uncheatable Eval since late 2025."""
