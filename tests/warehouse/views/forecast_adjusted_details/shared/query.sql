from internal.forecast_adjusted_details
where source = 's' and min_days_before_close = 0
