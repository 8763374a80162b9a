-- Name the protocol that published rates stand under; how they were scored is for their authors.
insert into protocols (protocol, description)
select
    'published' as protocol,
    'rates as others have published them; `tidemark land-published`' as description
where not exists (select 1 from protocols where protocol = 'published');
