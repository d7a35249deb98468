-- Which of gw's own objects a schema has.
select
  \ir parts/own_objects.sql
