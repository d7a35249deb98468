-- Wait between two reads of a poll. A statement serves threads, event loops and callers' connections alike.
select pg_catalog.pg_sleep(%(seconds)s::double precision)
