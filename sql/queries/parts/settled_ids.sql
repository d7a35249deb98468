-- The ids in `:SETTLED`, in one row, when there are fewer than were sent; nothing at all when every job was settled.
-- So the usual answer has no row instead of one for each job. With `:NOTIFIES` the notifications are sent first.
-- With `:RELEASES` there is a row as well when a queue was not released; its second column reports that.
-- With `:MEMBERS` there is a row as well when others wait for some of the jobs; its last column has their ids. Only
-- the row shows that: a job may begin to wait for one that runs, even while this statement waits for the row.
select pg_catalog.array_agg(id)
\if :RELEASES
     , (select count(*) from released) < pg_catalog.cardinality(%(queue_ids)s::int[])
\endif
\if :MEMBERS
     , pg_catalog.array_agg(id) filter (where flags ? 'gw:group')
\endif
  from :SETTLED
\if :NOTIFIES
 where (select count(*) from notified) >= 0
\endif
having count(*) < pg_catalog.cardinality(%(ids)s::bigint[])
\if :RELEASES
    or (select count(*) from released) < pg_catalog.cardinality(%(queue_ids)s::int[])
\endif
\if :MEMBERS
    or bool_or(flags ? 'gw:group')
\endif
