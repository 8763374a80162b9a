select
    model,
    source,
    num_months,
    tbi_per_month_low < tbi_per_month and tbi_per_month < tbi_per_month_high
    and abs(tbi_per_year_high - 12 * tbi_per_month_high) < 1e-12
    and abs(tbi_per_year_low - 12 * tbi_per_month_low) < 1e-12
    and tbi_per_month_low < tbi_per_month_low_documents
    and q_value = p_value as has_interval
from tbi_likelihood
where scope = 'source';
