// Runs Graphile Worker's scheduler on a crontab, with a clock that runs faster than ours: arguments are the package's entry
// module, the connection string, the crontab, the clock's start (ms since 1970) and how many times faster it runs.
import { pathToFileURL } from "node:url";

const [entry, connectionString, crontab, start, speed] = process.argv.slice(2);
const RealDate = Date;
const realSetTimeout = setTimeout;

if (Number(speed) !== 1) {
  // Time 0 of the fast clock is the time `start`, for all processes of a test alike.
  const [simulated, real] = start.split("@").map(Number);
  const now = () => Math.floor(simulated + (RealDate.now() - real) * Number(speed));
  globalThis.Date = class extends RealDate {
    constructor(...given) {
      super(...(given.length === 0 ? [now()] : given));
    }
    static now() {
      return now();
    }
  };
  globalThis.setTimeout = (callback, delay, ...given) => realSetTimeout(callback, (delay ?? 0) / Number(speed), ...given);
}

const { EventEmitter } = await import("node:events");
const { run, Logger } = await import(pathToFileURL(entry).href);
const events = new EventEmitter();
events.on("cron:started", () => process.stdout.write("started\n"));
await run({
  connectionString,
  crontab,
  taskList: { idle: async () => {} },
  noHandleSignals: true,
  pollInterval: 24 * 60 * 60 * 1000,
  logger: new Logger(() => () => {}),
  events,
});
