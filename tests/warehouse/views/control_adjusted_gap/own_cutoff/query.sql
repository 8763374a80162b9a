from control_adjusted_gap
where scope = 'source'
