-- Our role with each use of a table's rows for which row security shows it none, without any error.
select current_user::text, used.use
  \ir parts/hidden_rows.sql
