from headline_at(date '2024-02-01', date '2024-03-01')
