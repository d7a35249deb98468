-- What a sweep must know of its surroundings: are our and the Rust port's tables there, and how long is the server up.
-- Nobody could give a sign of life while the server was down.
select to_regclass(pg_catalog.format('%%I._private_gw_workers', %(schema)s::text)) is not null,
       to_regclass(pg_catalog.format('%%I._private_workers', %(schema)s::text)) is not null,
       date_part('epoch', now() - pg_postmaster_start_time())
