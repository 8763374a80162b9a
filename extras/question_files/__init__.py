"""Published questions of FreshBench and ForecastBench, imported from files."""
