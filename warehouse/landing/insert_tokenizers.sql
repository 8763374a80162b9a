-- Land the tokenizer that one cell was scored with.
-- Input: record_to_land, Arrow data with the columns of the table.
insert or replace into tokenizers by name
select * from record_to_land;
