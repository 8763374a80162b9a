-- Name the protocol that published rates stand under; how they were scored is for their authors.
insert or ignore into protocols (protocol, description)
values ('published', 'rates as others have published them; `tidemark land-published`');
