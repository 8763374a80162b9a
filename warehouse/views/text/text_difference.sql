-- Difference of each month's text from the text of the month before and of the first month.
-- Grain: one row per source, compared month; the first month is not compared and has no row.
-- Units: differences are 1 - similarity (Gestalt matching of characters); 0 if the texts are equal.
--   NULL if not measured (see reason), or not compared because the month before is not sealed.
-- Do not compare figures of the two methods: articles compares versions of the same pages; pooled
--   compares one month's sample of texts with another month's sample.
-- Source: Li et al. 2024, arXiv 2402.00861, appendix B; `tidemark corpus compare`.
create or replace view text_difference as
with first_months as (
    select
        source,
        min(other_month) as first_month
    from internal.text_comparisons
    group by source
),

from_first as (
    select t.*
    from internal.text_comparisons as t
    inner join first_months as f on t.source = f.source and t.other_month = f.first_month
),

from_previous as (
    select *
    from internal.text_comparisons
    where month = period_after(source, other_month)
)

select
    coalesce(p.source, f.source) as source,
    coalesce(p.month, f.month) as month,
    p.method,
    p.num_documents,
    p.num_bytes,
    p.difference as difference_from_previous,
    p.reason,
    f.other_month as first_month,
    f.method as method_from_first,
    f.num_documents as num_documents_from_first,
    f.difference as difference_from_first,
    f.reason as reason_from_first
from from_previous as p
full join from_first as f on p.source = f.source and p.month = f.month;
