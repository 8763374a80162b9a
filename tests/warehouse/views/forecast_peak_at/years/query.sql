from forecast_peak_at(6)
