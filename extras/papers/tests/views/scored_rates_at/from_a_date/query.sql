from papers.scored_rates_at(date '2024-02-01')
where benchmark in ('falls', 'few')
