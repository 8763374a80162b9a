-- Published monthly rates of texts, and their growth since the first year.
-- rate: size of the compressed text; mean over sources [% of the text]
-- relative: rate above the model's own mean of the first year; mean over sources [%]
-- num_sources: sources in the mean [sources]
-- place: of the family among those with several models; without such families, of the model
-- cutoff_here: stated or inferred, in the month of the model's cutoff
-- is_newest: True in the model's last month
-- is_named: True where the chart writes the name
with rates as (
    select
        model,
        source,
        month,
        100 * compression_rate as rate,
        month < min(month) over (partition by source) + interval 1 year as is_first
    from monthly_loss
    where protocol = 'published' and compression_rate is not null and is_text
),

compared as (
    select
        *,
        rate / avg(rate) filter (where is_first) over (partition by model, source) as ratio
    from rates
),

models_rated as (
    select
        model,
        month,
        avg(rate) as rate,
        100 * avg(ratio) - 100 as relative,
        count(*) as num_sources
    from compared
    group by model, month
),

families as (
    select
        m.family,
        row_number() over (order by count(*) desc, m.family) as place
    from models as m
    where m.family is not null and m.model in (select r.model from rates as r)
    group by m.family
    having count(*) > 1
),

growths as (
    select
        model,
        row_number() over (order by arg_max(relative, month) desc, model) as place
    from models_rated
    group by model
),

placed as (
    select
        r.*,
        m.family,
        case
            when f.place <= 8 then f.place
            when g.place <= 8 and not exists (select 1 from families) then g.place
        end as place,
        -- Some models have no rate of every month: the last one up to the cutoff.
        case
            when
                r.month = max(r.month) filter (where r.month <= m.cutoff)
                    over (partition by r.model)
                then m.cutoff_provenance
        end as cutoff_here,
        r.relative is not null
        and r.month = max(r.month) filter (where r.relative is not null) over (partition by r.model)
            as is_newest
    from models_rated as r
    inner join growths as g on r.model = g.model
    left join models as m on r.model = m.model
    left join families as f on m.family = f.family
)

select
    *,
    is_newest and (
        place is not null
        or relative in (
            max(relative) filter (where is_newest and place is null) over (),
            min(relative) filter (where is_newest and place is null) over ()
        )
    ) as is_named
from placed
order by model, month
