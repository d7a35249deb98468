"""The view `jobs`: what the public may see."""

from __future__ import annotations

from support.schema_fixture import SchemaFixture


def test_the_view_names_task_and_queue_and_hides_the_payload(schema: SchemaFixture) -> None:
    schema.add_job("mail", payload={"secret": 1}, queue_name="q", flags=["f"])
    schema.add_job("sms")

    named, plain = schema.run("select * from :S.jobs order by id")

    assert (named["task_identifier"], named["queue_name"], named["flags"]) == ("mail", "q", {"f": True})
    assert (plain["task_identifier"], plain["queue_name"]) == ("sms", None)
    assert "payload" not in named
