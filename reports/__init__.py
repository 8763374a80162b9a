"""Reports: charts and the page that people read; reads the warehouse, computes no figure itself."""
