-- Whether the index for the field of this limit can be used; `:TASK` is the id of the task.
exists (
  select
    from pg_class as indexes
    join pg_index as index on index.indexrelid = indexes.oid
   where indexes.relnamespace = (select tables.relnamespace from pg_class as tables where tables.oid = limits.tableoid)
     and indexes.relname::text
         = pg_catalog.format('jobs_gw_field_%%s_%%s', :TASK, pg_catalog.left(pg_catalog.md5(limits.field), 8))
     and index.indisvalid
)
