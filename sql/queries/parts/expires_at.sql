-- The time at which a job with these flags, `:FLAGS`, expires: in one of them, as microseconds since 1970; null without it.
-- A regular expression would take 40 us for each flag, and a function needs a search path of its own.
(
  select pg_catalog.to_timestamp(max(substr(keys.flag, 12)::bigint)::float8 / 1000000::float8)
    from pg_catalog.jsonb_object_keys(
           case when pg_catalog.jsonb_typeof(:FLAGS) = 'object'::text then :FLAGS else '{}'::jsonb end
         ) as keys (flag)
   where pg_catalog.left(keys.flag, 11) = 'gw:expires:'::text
     and length(keys.flag) between 12 and 29
     and translate(substr(keys.flag, 12), '0123456789'::text, ''::text) = ''::text
)
