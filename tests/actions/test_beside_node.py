"""Acting on a queue that the Node.js worker installed, filled and works on; the effects are its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.node_worker import NodeWorker

pytestmark = pytest.mark.interop

FAIL = {"mail": "throw new Error('Boom');"}
ADD = """
    const utils = await lib.makeWorkerUtils({ connectionString: url, schema });
    const ids = [];
    for (let i = 0; i < 6; i++) {
        const options = { queueName: i % 2 ? "q" : undefined, maxAttempts: i < 4 ? 1 : 5 };
        const job = await utils.addJob("mail", { i }, options);
        ids.push(Number(job.id));
    }
    await utils.release();
    return ids;
"""


def test_every_command_works_on_a_queue_of_node(gw: CliProgram, node: NodeWorker, nodes: Queue) -> None:
    jobs = node.script(nodes.url, ADD)
    node.run_once(nodes.url, FAIL)

    assert gw("doctor").code == 0
    assert gw("health").code == 0
    assert gw("retry", jobs[0], jobs[4]).code == 0
    assert gw("reschedule", jobs[1], "--attempts", "0", "--priority", "3", "--run-at", "now").code == 0
    assert gw("fail", jobs[5], "--reason", "Enough").code == 0
    assert gw("complete", jobs[2]).code == 0
    assert nodes.rows("select id, attempts, last_error from graphile_worker._private_jobs order by id") == [
        (jobs[0], 0, "Boom"),
        (jobs[1], 0, "Boom"),
        (jobs[3], 1, "Boom"),
        (jobs[4], 1, "Boom"),
        (jobs[5], 5, "Enough"),
    ]
    output = node.run_once(nodes.url, {"mail": "helpers.logger.info(`Ran ${helpers.job.id}`);"})
    assert all(f"Ran {job}" in output for job in (jobs[0], jobs[1], jobs[4]))
    assert gw("cleanup", "failed-jobs", "unused-queues", "unused-tasks", "--yes").code == 0
    assert (nodes.ids(), nodes.value("select count(*) from graphile_worker._private_tasks")) == ([], 0)


TWINS = """
    const utils = await lib.makeWorkerUtils({ connectionString: url, schema });
    const ids = { ours: [], theirs: [] };
    for (const side of ["ours", "theirs"]) {
        for (let i = 0; i < 4; i++) {
            const options = { queueName: "q" + i, jobKey: side + i, priority: i, flags: ["f"] };
            const job = await utils.addJob("mail", { i }, options);
            ids[side].push(Number(job.id));
        }
    }
    const runAt = new Date("2040-01-31T06:00:00Z");
    const options = { queueName: "q", runAt, maxAttempts: 3, jobKey: "theirs", priority: -5, flags: ["a", "b"] };
    const added = await utils.addJob("added", { n: 1 }, options);
    ids.theirs.push(Number(added.id));
    await utils.completeJobs([ids.theirs[0]]);
    await utils.permanentlyFailJobs([ids.theirs[1]], "Enough");
    const changes = { runAt: new Date("2040-01-01T00:00:00Z"), priority: 7, attempts: 2, maxAttempts: 9 };
    await utils.rescheduleJobs([ids.theirs[2]], changes);
    await utils.withPgClient((client) => client.query(`select "${schema}".remove_job('theirs3')`));
    await utils.release();
    return ids;
"""
COMPARED = """
    select tasks.identifier, queues.queue_name, jobs.payload::text, jobs.priority, jobs.attempts, jobs.max_attempts,
           jobs.last_error, replace(replace(jobs.key, 'ours', ''), 'theirs', ''), jobs.locked_at, jobs.locked_by,
           jobs.revision, jobs.flags, jobs.is_available, case when jobs.run_at > '2039-01-01' then jobs.run_at end
      from graphile_worker._private_jobs as jobs
      join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id
      left join graphile_worker._private_job_queues as queues on queues.id = jobs.job_queue_id
     where jobs.id = any(%s)
     order by jobs.id
"""


def test_what_our_commands_do_is_what_graphile_worker_does(gw: CliProgram, node: NodeWorker, nodes: Queue) -> None:
    ids = node.script(nodes.url, TWINS)
    ours, theirs = ids["ours"], ids["theirs"]

    options = ("-q", "q", "--run-at", "2040-01-31T06:00:00Z", "--max-attempts", "3", "--priority", "-5")
    flags = ("--flag", "a", "--flag", "b")
    ours.append(int(gw("add", "added", "-p", '{"n":1}', *options, *flags, "-k", "ours").out))
    assert gw("complete", ours[0]).code == 0
    assert gw("fail", ours[1], "--reason", "Enough").code == 0
    changes = ("--run-at", "2040-01-01T00:00:00Z", "--priority", "7", "--attempts", "2", "--max-attempts", "9")
    assert gw("reschedule", ours[2], *changes).code == 0
    assert gw("remove", "ours3").out == f"removed {ours[3]}\n"

    found = nodes.rows(COMPARED, ours)
    assert len(found) == 3
    assert found == nodes.rows(COMPARED, theirs)


def test_jobs_of_graphile_worker_are_shown_and_can_be_unlocked_and_run(
    gw: CliProgram, node: NodeWorker, nodes: Queue, tmp_path: Path
) -> None:
    jobs = node.script(nodes.url, ADD)
    nodes.set(jobs[5], "attempts = 1, locked_at = now(), locked_by = 'worker-a1'")
    nodes.rows("update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'worker-a1'")

    assert {each["id"]: each["state"] for each in gw("list", "--json").json} == {
        job: "running" if job == jobs[5] else "ready" for job in jobs
    }
    assert gw("show", jobs[3], "--json").json["payload"] == {"i": 3}
    assert gw("stats", "--json").json["states"]["ready"]["count"] == 5
    assert [(each["queue_name"], each["locked_by"]) for each in gw("queues", "--json").json] == [("q", "worker-a1")]
    assert [(each["task"], each["running"]) for each in gw("tasks", "--json").json] == [("mail", 1)]
    assert [(each["id"], each["state"], each["jobs"]) for each in gw("workers", "--json").json] == [
        ("worker-a1", "no_heartbeat", 1)
    ]
    assert gw("unlock", "worker-a1", "--yes").code == 0
    (tmp_path / "more.jsonl").write_text('{"task": "mail", "payload": {"i": 6}}\n')
    assert gw("add", "--from", "more.jsonl").code == 0
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload):\n    if payload['i'] == 6: raise ValueError\n")
    assert gw("run", "--once").code == 0
    assert [
        (task, error) for task, error in nodes.rows("select task_identifier, last_error from graphile_worker.jobs")
    ] == [("mail", "ValueError (tasks/mail.py:2 in mail)")]
    assert gw("sweep").code == 0
