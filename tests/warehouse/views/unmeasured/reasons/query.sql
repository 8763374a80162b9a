from unmeasured
where
    model = 'a' and scope = 'source'
    and coalesce(left_out_of, 'tbi_likelihood') = 'tbi_likelihood'
