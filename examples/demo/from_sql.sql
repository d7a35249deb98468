-- Any language that speaks SQL adds jobs, in the transaction that makes them necessary.
select graphile_worker.add_job('hello', json_build_object('name', 'plain SQL'));

-- So does a trigger: every insert of a customer adds a greeting.
create table if not exists customers (id bigint generated always as identity primary key, name text not null);

create or replace function greet_customer() returns trigger language plpgsql as $$
begin
  perform graphile_worker.add_job('hello', json_build_object('name', new.name), job_key := 'greet-' || new.id);
  return new;
end
$$;

create or replace trigger greet_customer after insert on customers for each row execute function greet_customer();

insert into customers (name) values ('a trigger');
