-- The time at which a job with these flags, `:FLAGS`, expires: in one of them, as microseconds since 1970; null without it.
-- A function would take three times as long, because it needs a search path of its own.
(
  select pg_catalog.to_timestamp(max(substring(keys.flag from '^gw:expires:([0-9]{1,18})$'::text)::float8) / 1000000::float8)
    from pg_catalog.jsonb_object_keys(
           case when pg_catalog.jsonb_typeof(:FLAGS) = 'object'::text then :FLAGS else '{}'::jsonb end
         ) as keys (flag)
)
