-- The transactions of this database that were prepared for a two-phase commit, the oldest first.
select prepared.gid, date_part('epoch', clock_timestamp() - prepared.prepared)
  from pg_prepared_xacts as prepared
 where prepared.database = current_database()
 order by prepared.prepared
 limit %(most)s::bigint
