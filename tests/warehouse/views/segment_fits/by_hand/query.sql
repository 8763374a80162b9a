from internal.segment_fits
where
    source = 'a'
    and (first_position, last_position) in ((5, 7), (1, 6));
