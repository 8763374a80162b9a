from internal.forecast_bins_at('null')
