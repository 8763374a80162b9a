from forecast_adjusted
where min_days_before_close <= 30
