from forecast_bins_at('observed')
