-- A session, `:SESSION`: who it is, for how long it is in its state and in its transaction, and its statement.
:SESSION.pid,
:SESSION.usename::text,
nullif(:SESSION.application_name, ''),
:SESSION.state,
date_part('epoch', clock_timestamp() - :SESSION.state_change),
date_part('epoch', clock_timestamp() - :SESSION.xact_start),
left(:SESSION.query, 200)
