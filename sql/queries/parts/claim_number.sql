-- What a renewal does not change of `:TIME`: the microseconds within ten minutes.
mod(round(date_part('epoch', :TIME) * 1000000::float8)::bigint, 600000000::bigint)
