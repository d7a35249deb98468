-- The uses of tables, each `r TABLE` for reading, `w TABLE` for updates or `d TABLE` for deletes, for which row security
-- shows our role not all rows. A policy with a condition is taken to hide some.
select used.use
  from pg_catalog.unnest(%(uses)s::text[]) as used (use)
  join pg_class as tables on tables.relname = substr(used.use, 3)::name
  join pg_namespace as namespaces on namespaces.oid = tables.relnamespace
 where namespaces.nspname = %(schema)s::text
   and 'all' <>
   \set TABLE tables.oid
   \set COMMAND 'substr(used.use, 1, 1)'
   \ir parts/rows_shown.sql
 order by used.use
