-- Notify the workers as adding this many jobs does; the function that reschedules jobs sends no notification.
select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":' || %(count)s::int::text || '}')
