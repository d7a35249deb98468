-- The oldest transaction that keeps vacuum from removing dead rows.
select held.what, held.seconds
  from (
         select pg_catalog.format('process %%s of %%s (%%s)', pid, coalesce(usename::text, '?'), coalesce(state, '?')) as what,
                date_part('epoch', now() - xact_start) as seconds
           from pg_stat_activity
          where datname = current_database()
            and pid <> pg_backend_pid()
            and backend_type = 'client backend'
            and xact_start is not null
         union all
         select pg_catalog.format('prepared transaction %%s', gid), date_part('epoch', now() - prepared)
           from pg_prepared_xacts
          where database = current_database()
       ) as held
 order by held.seconds desc
 limit 1
