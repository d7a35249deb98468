-- The names of gw's tables, of the one of graphile_worker_rs, and of gw's valid indexes, if the schema has them.
array(
  select objects.relname::text
    from pg_class as objects
    join pg_namespace as namespaces on namespaces.oid = objects.relnamespace
    left join pg_index as indexes on indexes.indexrelid = objects.oid
   where namespaces.nspname = %(schema)s::text
     and objects.relname = any(array[
           '_private_gw_workers', '_private_workers', '_private_gw_renewed_locks', '_private_gw_pauses',
           '_private_gw_limits', '_private_gw_waiting', '_private_gw_statistics',
           'jobs_gw_queue_heads_index', 'jobs_gw_locked_index', 'jobs_gw_failed_index'
         ])
     and indexes.indisvalid is not false
)
