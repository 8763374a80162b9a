from control_adjusted_gap
where scope = 'all'
