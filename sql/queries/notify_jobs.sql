-- Wake the workers as adding so many jobs does, since the function that reschedules tells nobody.
select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":' || %(count)s::int::text || '}')
