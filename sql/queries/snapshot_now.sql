-- The server's time, and how many sessions of the database wait for a lock.
select
  date_part('epoch', now()),
  (select count(*)
     from pg_stat_activity as sessions
    where sessions.datname = current_database()
      and sessions.wait_event_type = 'Lock')
