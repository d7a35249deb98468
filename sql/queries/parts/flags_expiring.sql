-- The flags of a new job, `:FLAGS`, with the one of the time at which it expires: `:AT`, or `:IN` seconds from now, or never.
(
  select case
           when expiry.at is null then :FLAGS
           else pg_catalog.array_append(
                  :FLAGS,
                  'gw:expires:'::text || ((greatest(date_part('epoch', expiry.at), 0::float8) * 1000000::float8)::bigint)::text
                )
         end
    from (select coalesce(:AT, now() + make_interval(secs => :IN)) as at) as expiry
)
