-- What a sweep must know of its surroundings: is the Rust port's table there, and how long has the server been up.
-- Nobody could give a sign of life while the server was down.
select to_regclass(format('%%I._private_workers', %(schema)s::text)) is not null,
       date_part('epoch', now() - pg_postmaster_start_time())
