from papers.forecast_peak_at(6)
