-- The tables of the queue whose changes a publication contains and that have no identity for it: PostgreSQL rejects updates
-- and deletes there. A publication may list a partition by its partitioned table.
select tables.relname::text
  from pg_class as tables
  join pg_namespace as namespace on namespace.oid = tables.relnamespace
 where namespace.nspname = %(schema)s::text
   and tables.relkind = 'r'::"char"
   and (
         tables.relreplident = 'n'::"char"
      or tables.relreplident = 'd'::"char"
     and not exists (
           select from pg_index as keys where keys.indrelid = tables.oid and keys.indisprimary
         )
       )
   and exists (
         select
           from pg_publication as publications
           join pg_publication_tables as published on published.pubname = publications.pubname
           join pg_namespace as namespaces on namespaces.nspname = published.schemaname
           join pg_class as listed on listed.relnamespace = namespaces.oid and listed.relname = published.tablename
          where (publications.pubupdate or publications.pubdelete)
            and (
                  listed.oid = tables.oid
               or listed.oid = any(array(
                    select parents.inhparent from pg_inherits as parents where parents.inhrelid = tables.oid
                  ))
                )
       )
 order by tables.relname
