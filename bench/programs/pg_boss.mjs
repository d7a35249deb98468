// pg-boss as it is fastest: `install`, `fill SHAPE COUNT`, and `drain COUNT`, which ends with the last job.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [entry, url, action, ...rest] = process.argv.slice(2);
const { PgBoss } = await import(pathToFileURL(entry));
const boss = new PgBoss({ connectionString: url, useListenNotify: true, flowIntervalSeconds: 1 });
boss.on("error", console.error);
await boss.start();

function jobs(shape, count) {
  const ref = (n) => `${n}`;
  return Array.from({ length: count }, (_, n) => {
    const isLast = n === count - 1;
    const all = Array.from({ length: n }, (_, each) => ref(each));
    const dependsOn = shape === "chain" ? all.slice(-1) : shape === "fan-in" && isLast ? all : [];
    return { ref: ref(n), name: "noop", data: { n }, dependsOn };
  });
}

if (action === "install") {
  await boss.createQueue("noop", { notify: true });
} else if (action === "fill") {
  const added = jobs(rest[0], Number(rest[1]));
  await (rest[0] === "plain" ? boss.insert("noop", added.map(({ data }) => ({ data }))) : boss.flow(added));
} else {
  const ran = [];
  const polling = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  await new Promise((resolve) =>
    boss.work("noop", { batchSize: 1000, ...polling }, async (batch) => {
      ran.push(...batch.map((job) => job.data.n));
      if (ran.length >= Number(rest[0])) resolve();
    }),
  );
  writeFileSync(join(process.env.BENCH_RAN, `ran-${process.pid}`), Uint32Array.from(ran));
}
await boss.stop();
process.exit();
