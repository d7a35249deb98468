-- Wake the callers who wait for the end of one of `:ENDED`. A notification holds at most 8,000 bytes, so 300 ids.
notified as (
  select pg_notify('gw:done'::text, string_agg(numbered.id::text, ','::text))
    from (
      select kept.id, row_number() over () / 300 as part
        from kept
        join :ENDED as ended on ended.id = kept.id
       where kept.is_awaited
    ) as numbered
   group by numbered.part
)
