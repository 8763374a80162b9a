"""Results of others, from files: rates, benchmark scores, ratings of difficulty, and answers."""
