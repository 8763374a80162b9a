-- Landing of losses: cells that tidemark scored, and imported files.
-- In: losses_to_land, Arrow data or a Parquet file of schema LOSSES; provenance, digests per cell.
-- Out: chunk_losses has each row once; internal.landed_cells has a row per cell, with its sums;
-- cell_kinds, cell_replicates, cell_costs, cell_milestones, byte_class_losses and tokenizers agree
-- with them.
-- Statements stand in the order in which they run.

---------- Stage and check what comes in

-- name: read_given
-- Define incoming losses as the given data, read in place. NaN becomes NULL ("not measured").
-- Input: losses_to_land, data of schema LOSSES.
create or replace temp view incoming as
select
    * replace (
        case when not isnan(nll_nats) then nll_nats end as nll_nats,
        case when nll_nats is null or isnan(nll_nats) then reason end as reason
    )
from losses_to_land;

-- name: create_staged
-- The staging table for losses that cannot be read in place. The statement runs outside a
-- transaction: in DuckDB 2.0.0 a table created from an empty result still looks empty after the
-- same transaction has filled it (2026-11-20).
create or replace temp table staged as
select * from chunk_losses
where false;

-- name: stage_incoming
-- Copy the incoming losses to the staging table, to change them before landing.
insert into staged by name
select * from incoming;

-- name: read_staged
-- Define incoming losses as the staged losses.
create or replace temp view incoming as
select *
from staged;

-- name: count_broken
-- The number of rows that violate schema LOSSES (core/schemas reports the row and the rule).
select count(*) as num_rows
from losses_to_land
where
    coalesce(strlen(model) not between 1 and 4096, true)
    or coalesce(strlen(revision) > 4096, true)
    or coalesce(strlen(source) not between 1 and 4096, true)
    or coalesce(strlen(document_id) not between 1 and 4096, true)
    or coalesce(strlen(protocol) not between 1 and 4096, true)
    or day(month) <> 1 or year(month) not between 1 and 9999
    or chunk_index is null or chunk_index < 0
    or coalesce(num_tokens not between 0 and 1099511627775, true)
    or coalesce(num_chars not between 0 and 1099511627775, true)
    or coalesce(num_bytes not between 0 and 1099511627775, true)
    or (not isnan(nll_nats) and not (nll_nats >= 0 and nll_nats < 70368744177664))
    or ((nll_nats is null or isnan(nll_nats)) and coalesce(trim(reason), '') = '')
    or strlen(reason) > 4096 or regexp_matches(reason, '[\x00-\x1F\x7F]');

-- name: number_cells
-- The incoming cells with numbers: grouping by a number is cheaper than by four names and a date.
-- A cell with losses of two model revisions has two numbers; a later statement refuses the cell.
create or replace temp table incoming_cells as
select
    model,
    revision,
    source,
    month,
    protocol,
    cast(row_number() over (order by model, source, month, protocol, revision) as integer) as cell
from incoming
group by model, revision, source, month, protocol;

-- name: group_documents
-- Sums over the incoming chunks of each document.
-- may_have_twins: true if a chunk may be duplicate. For the first 62 chunks of a document, a sum of
-- powers of two decides exactly. For longer documents, find_duplicate decides.
create or replace temp table incoming_documents as
select
    cells.cell,
    i.document_id,
    count(*) as num_chunks,
    count(i.nll_nats) as num_measured,
    count(*) filter (where i.nll_nats is null and i.reason = 'non_finite') as num_not_finite,
    sum(i.nll_nats) as nll_nats,
    sum(i.num_tokens) filter (where i.nll_nats is not null) as num_tokens,
    sum(i.num_chars) filter (where i.nll_nats is not null) as num_chars,
    sum(i.num_bytes) filter (where i.nll_nats is not null) as num_bytes,
    count(*) > bit_count(bit_or(cast(1 as bigint) << (i.chunk_index % 62))) as may_have_twins
from incoming as i
inner join incoming_cells as cells
    on
        i.model = cells.model
        and i.revision = cells.revision
        and i.source = cells.source
        and i.month is not distinct from cells.month
        and i.protocol = cells.protocol
group by cells.cell, i.document_id;

-- name: count_incoming
-- The number of incoming rows, and the number of documents that may have duplicate chunks.
select
    coalesce(sum(num_chunks), 0) as num_rows,
    count(*) filter (where may_have_twins) as num_documents_with_twins
from incoming_documents;

-- name: find_duplicate
-- The first duplicate chunk, searched only in documents that may have one in any cell.
select
    model,
    source,
    month,
    protocol,
    document_id,
    chunk_index,
    count(*) as num_rows
from incoming
where
    document_id in (
        select document_id
        from incoming_documents
        where may_have_twins
    )
group by model, source, month, protocol, document_id, chunk_index
having count(*) > 1
order by all
limit 1;

-- name: define_bad_names
-- Names are compared by what people see, so signs that are not seen are refused. Joiners within a
-- name are spelling. A decomposed name looks like the one with composed characters. Names of models
-- and the like are stricter than ids of documents, which may be titles: selectors are no part of
-- them, and a joiner does not stand beside a Latin letter.
create or replace temp macro sign_fault(name) as
case
    when regexp_matches(name, '[\x00-\x1F\x7F-\x{9F}\x{2028}\x{2029}]|^[\s\pZ]|[\s\pZ]$')
        then 'no control characters and no outer blanks'
    when
        regexp_matches(
            name,
            '[\x{AD}\x{61C}\x{17B4}\x{17B5}\x{200B}\x{200E}\x{200F}\x{202A}-\x{202E}]'
            || '|[\x{2060}-\x{206F}\x{3164}\x{FEFF}\x{FFA0}\x{FFF0}-\x{FFFB}\x{1BCA0}-\x{1BCA3}]'
            || '|[\x{1D173}-\x{1D17A}\x{E0000}-\x{E00FF}\x{E01F0}-\x{E0FFF}]'
            || '|^[\x{200C}\x{200D}]|[\x{200C}\x{200D}]$'
        )
        then 'no signs that are not seen'
    when
        -- The last two of each plane, and 32 more.
        regexp_matches(name, '[\x{FDD0}-\x{FDEF}\x{FFFE}\x{FFFF}]')
        or list_has_any(
            list_transform(
                regexp_extract_all(name, '[\x{10000}-\x{10FFFF}]'), lambda c: unicode(c) % 65536
            ),
            [65534, 65535]
        )
        then 'no code points that are no characters'
end;
create or replace temp macro name_fault(name) as
coalesce(
    sign_fault(name),
    case
        when
            regexp_matches(
                name,
                '[\x{34F}\x{115F}\x{1160}\x{180B}-\x{180F}\x{2800}\x{FE00}-\x{FE0F}]'
                || '|[\x{E0100}-\x{E01EF}]|\p{Latin}[\x{200C}\x{200D}]|[\x{200C}\x{200D}]\p{Latin}'
            )
            then 'no signs that are not seen'
        when regexp_matches(name, '^\pM') then 'no mark before the first letter'
        when nfc_normalize(name) <> name then 'composed characters (NFC)'
    end
);

-- name: find_impossible
-- The first incoming document that no corpus can have, with the rule that it breaks.
-- Nearly all tokens stand for a byte or more; four a byte allow for texts that a tokenizer expands,
-- and the 16 for tokens of its own. A document's chunks are judged together, since one of them may
-- end within a character. Dates before 1700 are those that programs write for none.
with cells as (
    select
        * replace (array_to_string(list_sort(list(revision) over of_cell), ' and ') as revision),
        max(
            coalesce(
                name_fault(model), name_fault(revision), name_fault(source), name_fault(protocol)
            )
        ) over of_cell as fault,
        count(*) over of_cell > 1 as is_mixed
    from incoming_cells
    window of_cell as (partition by model, source, month, protocol)
),

judged as (
    select
        cells.*,
        d.document_id,
        d.num_tokens,
        d.num_chars,
        d.num_bytes,
        d.nll_nats,
        case
            when cells.protocol = 'published'
                then
                    'protocol ''published'' is kept for rates that others have published '
                    || '(`tidemark land rates`); give these losses another'
            when cells.month > $today then 'a month must not be to come'
            when cells.month < date '1700-01-01' then 'a month must not be before 1700'
            when d.num_bytes = 0 and d.nll_nats > 0 then 'a text without bytes has no loss'
            when d.num_tokens = 0 and d.nll_nats > 0 then 'a text without tokens has no loss'
            when d.num_tokens = 0 and d.num_bytes > 0 then 'a text with bytes has a token'
            when d.num_chars > d.num_bytes then 'a character has at least one byte'
            when d.num_tokens > 4 * d.num_bytes + 16 then 'a text has at most 4 tokens a byte'
            when cells.fault is not null then 'names have ' || cells.fault
            when sign_fault(d.document_id) is not null
                then 'a document_id has ' || sign_fault(d.document_id)
            when cells.is_mixed then 'a cell has two revisions of its model'
        end as rule
    from incoming_documents as d
    inner join cells on d.cell = cells.cell
)

select * exclude (cell, fault, is_mixed, num_chars)
from judged
where rule is not null
order by cell, document_id
limit 1;

-- name: find_twin
-- A name that has not landed, and one beside it or landed that differs in letter case or blanks
-- alone. Columns: kind (model, source, protocol), name, twin.
with incoming as (
    select distinct
        kind,
        name
    from incoming_cells
    unpivot (name for kind in (model, source, protocol))
),

landed as (
    select distinct
        kind,
        name
    from internal.landed_cells
    unpivot (name for kind in (model, source, protocol))
),

every as (
    select * from landed
    union
    select * from incoming
)

select
    new.kind,
    new.name,
    every.name as twin
from incoming as new
anti join landed as same on new.kind = same.kind and new.name = same.name
inner join every
    on
        new.kind = every.kind
        and new.name <> every.name
        and lower(regexp_replace(new.name, '\s+', ' ', 'g'))
        = lower(regexp_replace(every.name, '\s+', ' ', 'g'))
order by all
limit 1;

---------- Compare it with what has landed

-- name: find_touched
-- The landed cells that incoming rows belong to.
create or replace temp table touched as
select landed.*
from internal.landed_cells as landed
semi join incoming_cells as cells
    on
        (landed.model, landed.source, landed.month, landed.protocol)
        is not distinct from (cells.model, cells.source, cells.month, cells.protocol);

-- name: drop_landed_rows
-- Delete staged rows that equal their landed rows.
create or replace temp table staged as
select * from staged
except
select landed.*
from chunk_losses as landed
semi join touched as t
    on
        landed.model = t.model
        and landed.source = t.source
        and landed.month is not distinct from t.month
        and landed.protocol = t.protocol;

-- name: find_conflict
-- The first staged row that conflicts with landed rows: its chunk has landed with other losses, or
-- its cell with another revision of the model.
select
    i.model,
    i.source,
    i.month,
    i.protocol,
    i.document_id,
    i.chunk_index,
    i.revision,
    t.revision as landed_revision,
    i.nll_nats,
    landed.nll_nats as landed_nll_nats
from staged as i
inner join touched as t
    on
        i.model = t.model
        and i.source = t.source
        and i.month is not distinct from t.month
        and i.protocol = t.protocol
left join chunk_losses as landed
    on
        i.model = landed.model
        and i.source = landed.source
        and i.month is not distinct from landed.month
        and i.protocol = landed.protocol
        and i.document_id = landed.document_id
        and i.chunk_index = landed.chunk_index
where i.revision <> t.revision or landed.document_id is not null
order by all
limit 1;

-- name: merge_landed_rows
-- Stage the landed rows of touched cells to keep: same revision, and not superseded.
insert into staged
select landed.*
from chunk_losses as landed
semi join incoming_cells as cells
    on
        landed.model = cells.model
        and landed.revision = cells.revision
        and landed.source = cells.source
        and landed.month is not distinct from cells.month
        and landed.protocol = cells.protocol
anti join staged as i
    on
        landed.model = i.model
        and landed.source = i.source
        and landed.month is not distinct from i.month
        and landed.protocol = i.protocol
        and landed.document_id = i.document_id
        and landed.chunk_index = i.chunk_index;

---------- Replace the rows of the touched cells, and their sums

-- name: group_clusters
-- Sums over the measured chunks of each cluster of incoming documents (the unit of resampling).
-- Documents without a cluster are not grouped again: most have none, and grouping is expensive.
create or replace temp table incoming_clusters as
with clustered as (
    select
        cells.cell,
        d.document_id,
        d.cluster_id
    from documents as d
    inner join incoming_cells as cells
        on d.source = cells.source and d.month is not distinct from cells.month
    where d.cluster_id is not null
)

select
    i.cell,
    i.document_id as cluster_id,
    i.nll_nats,
    cast(i.num_bytes as double) as num_bytes
from incoming_documents as i
anti join clustered as d on i.cell = d.cell and i.document_id = d.document_id
where i.num_measured > 0
union all
select
    i.cell,
    d.cluster_id,
    sum_exactly(i.nll_nats) as nll_nats,
    cast(sum(i.num_bytes) as double) as num_bytes
from incoming_documents as i
inner join clustered as d on i.cell = d.cell and i.document_id = d.document_id
where i.num_measured > 0
group by i.cell, d.cluster_id;

-- name: insert_cells
-- Insert the incoming cells. A cell that imported rows of the same revision extend or replace keeps
-- its provenance: a user's rows stay until the cell is scored differently.
-- The standard error is the jackknife's over clusters: macro clustered_error.
-- Input: provenance, Arrow data with one row per cell scored here; imported losses have none.
insert into internal.landed_cells by name
with sums as materialized (
    select
        cell,
        count(*) as num_documents,
        cast(sum(num_chunks) as bigint) as num_chunks,
        cast(sum(num_chunks - num_measured) as bigint) as num_unmeasured,
        cast(sum(num_not_finite) as bigint) as num_not_finite,
        sum_exactly(nll_nats) as nll_nats,
        cast(sum(num_tokens) as bigint) as num_tokens,
        cast(sum(num_chars) as bigint) as num_chars,
        cast(sum(num_bytes) as bigint) as num_bytes,
        coalesce(
            bit_xor(cast('0x' || substr(md5(document_id || ' ' || num_bytes), 1, 15) as bigint)), 0
        ) as fingerprint
    from incoming_documents
    group by cell
),

residuals as (
    select
        k.cell,
        s.num_bytes,
        cluster_residual(k.nll_nats, k.num_bytes, s.nll_nats, s.num_bytes) as residual
    from incoming_clusters as k
    inner join sums as s on k.cell = s.cell
),

errors as (
    select
        cell,
        count(*) as num_clusters,
        clustered_error(residual, any_value(num_bytes)) as standard_error,
        clustered_freedom(residual) as degrees_of_freedom
    from residuals
    group by cell
)

select
    c.* exclude (cell),
    s.* exclude (cell),
    coalesce(p.partition_digest, t.partition_digest) as partition_digest,
    coalesce(p.partition_version, t.partition_version) as partition_version,
    coalesce(p.scoring, t.scoring) as scoring,
    coalesce(e.num_clusters, 0) as num_clusters,
    e.standard_error,
    e.degrees_of_freedom
from incoming_cells as c
inner join sums as s on c.cell = s.cell
left join errors as e on c.cell = e.cell
left join provenance as p
    on
        (c.model, c.source, c.month, c.protocol)
        is not distinct from (p.model, p.source, p.month, p.protocol)
left join touched as t
    on
        (c.model, c.revision, c.source, c.month, c.protocol)
        is not distinct from (t.model, t.revision, t.source, t.month, t.protocol);

-- name: insert_cell_kinds
-- Sums of the incoming cells by kind of document. Documents that have not landed are of no kind.
-- Errors are computed and rounded as in insert_cells; a cluster in two kinds counts in each.
insert into internal.cell_kinds by name
with clusters as materialized (
    select
        i.cell,
        kind_of(d.category, d.language) as kind,
        coalesce(d.cluster_id, i.document_id) as cluster_id,
        count(*) as num_documents,
        sum_exactly(i.nll_nats) as nll_nats,
        cast(sum(i.num_bytes) as double) as num_bytes
    from incoming_documents as i
    inner join incoming_cells as c on i.cell = c.cell
    inner join documents as d
        on
            c.source = d.source
            and c.month is not distinct from d.month
            and i.document_id = d.document_id
    where i.num_measured > 0
    group by all
),

sums as materialized (
    select
        cell,
        kind,
        sum(num_documents) as num_documents,
        sum_exactly(nll_nats) as nll_nats,
        sum(num_bytes) as num_bytes
    from clusters
    group by cell, kind
),

residuals as (
    select
        s.*,
        cluster_residual(k.nll_nats, k.num_bytes, s.nll_nats, s.num_bytes) as residual
    from clusters as k
    inner join sums as s on k.cell = s.cell and k.kind = s.kind
)

select
    c.* exclude (revision, cell),
    r.kind,
    cast(any_value(r.num_documents) as bigint) as num_documents,
    any_value(r.nll_nats) as nll_nats,
    cast(any_value(r.num_bytes) as bigint) as num_bytes,
    clustered_error(r.residual, any_value(r.num_bytes)) as standard_error,
    clustered_freedom(r.residual) as degrees_of_freedom
from residuals as r
inner join incoming_cells as c on r.cell = c.cell
group by all;

-- name: seed_clusters
-- The incoming clusters with the seeds of their weights, which are the same in every cell.
-- A separate table, because DuckDB then knows its size and plans the 200 draws better (a seventh of
-- the processor time of a single statement).
-- A cell with a single cluster is left out: all its replicates would be equal, which would show a
-- false certainty.
create or replace temp table incoming_seeds as
with seeds as materialized (
    select
        cluster_id,
        cast('0x' || substr(md5(cluster_id), 1, 8) as bigint) % 2147483647 as seed
    from incoming_clusters
    group by cluster_id
),

several as (
    select cell
    from incoming_clusters
    group by cell
    having count(*) > 1
)

select
    k.cell,
    seeds.seed,
    round(k.nll_nats * 65536) as nll,
    k.num_bytes
from incoming_clusters as k
semi join several on k.cell = several.cell
inner join seeds on k.cluster_id = seeds.cluster_id
order by k.cell;

-- name: insert_replicates
-- Bootstrap replicates of the incoming cells' sums: 200 times, each cluster of documents is drawn
-- Poisson(1) times. A cluster has the same weight in every cell, so differences are paired.
-- Source: Poisson bootstrap, Chamandy et al. 2012, "Estimating Uncertainty for Massive Data
-- Streams"; the weight is the Poisson(1) quantile of u / (2^31 - 1), u as in replicate_constants.
-- Sums are of integers (nats in 1/65536), so that the result does not depend on the order.
insert into internal.cell_replicates by name
with draws as (
    select
        seeded.cell,
        r.replicate,
        seeded.nll,
        seeded.num_bytes,
        (r.multiplier * seeded.seed + r.increment) % 2147483647 as u
    from incoming_seeds as seeded
    cross join internal.replicate_constants as r
),

weighted as (
    select
        cell,
        replicate,
        nll,
        num_bytes,
        case
            when u < 790015084 then 0
            when u < 1580030168 then 1
            when u < 1975037710 then 2
            when u < 2106706891 then 3
            when u < 2139624186 then 4
            when u < 2146207645 then 5
            when u < 2147304888 then 6
            else 7
        end as weight
    from draws
),

sums as (
    select
        cell,
        replicate,
        sum(weight * nll) / 65536 as nll_nats,
        sum(weight * num_bytes) as num_bytes
    from weighted
    group by cell, replicate
)

select
    cells.* exclude (revision, cell),
    sums.* exclude (cell)
from sums
inner join incoming_cells as cells on sums.cell = cells.cell
order by cells.cell, sums.replicate;

-- name: drop_stray_tokenizers
-- Delete the tokenizers of revisions without landed cells.
delete from tokenizers as t
where not exists (
    select 1
    from internal.landed_cells as cells
    where cells.model = t.model and cells.revision = t.revision
);

---------- Read what has landed

-- name: list_landed_cells
-- The landed cells of one model: one row per cell, with the digests of the inputs of its losses.
select
    cells.source,
    cells.month,
    cells.protocol,
    cells.revision,
    cells.partition_digest,
    cells.scoring,
    costs.scored_at
from internal.landed_cells as cells
left join cell_costs as costs
    on
        (cells.model, cells.source, cells.month, cells.protocol)
        is not distinct from (costs.model, costs.source, costs.month, costs.protocol)
where cells.model = $model;

-- name: find_landed_models
-- The models that the warehouse names, each with one of its revisions.
select
    m.model,
    coalesce(max(c.revision), any_value(m.revision)) as revision
from models as m
left join internal.landed_cells as c on m.model = c.model
group by m.model
order by m.model;

-- name: list_sources_of
-- The sources with documents under a licence. Parameter: licence.
select distinct source
from documents
where licence = $licence;
