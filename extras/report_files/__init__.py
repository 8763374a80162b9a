"""Files beside the site: charts for papers, and a small database for other programs."""
