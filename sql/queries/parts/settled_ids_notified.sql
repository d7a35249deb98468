-- As parts/settled_ids.sql, once the notifications are sent.
select pg_catalog.array_agg(id)
  from :SETTLED
 where (select count(*) from notified) >= 0
having count(*) < pg_catalog.cardinality(%(ids)s::bigint[])
