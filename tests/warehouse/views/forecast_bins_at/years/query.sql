from forecast_bins_at('null')
