-- Whether gw's commands record the jobs that they delete: history exists and this role may read and write it, and no
-- trigger of `gw record-others` does it already.
select exists (
         select
           from pg_class as history
           join pg_namespace as namespaces on namespaces.oid = history.relnamespace
          where namespaces.nspname = %(schema)s::text
            and history.relname = '_private_gw_history'
            and has_table_privilege(history.oid, 'select')
            and has_table_privilege(history.oid, 'insert')
            and 'all' =
            \set TABLE history.oid
            \set COMMAND ''r''
            \ir parts/rows_shown.sql
            and 'all' =
            \set COMMAND ''w''
            \ir parts/rows_shown.sql
            and not exists (
                  select
                    from pg_trigger as triggers
                    join pg_class as jobs on jobs.oid = triggers.tgrelid
                   where jobs.relnamespace = history.relnamespace
                     and triggers.tgname = '_private_gw_record_others'
                )
       )
