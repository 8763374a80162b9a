-- Why a mean over months has no interval over time; NULL if it has one.
-- Parameter: num_blocks, the blocks of three calendar months of the source with fewest.
create or replace macro lacking_blocks(num_blocks) as
    lacking_number(num_blocks, 'block', ' of three months', 'blocks of a difference');
