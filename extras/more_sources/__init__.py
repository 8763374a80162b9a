"""Sources that few use: preprints of biology, companies' press releases, laws, tales, questions."""
