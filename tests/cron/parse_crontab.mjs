// Reads {"crontabs": [text…], "digests": [{min, hour, date, month, dow}…]} from stdin and answers, for each text, what
// Graphile Worker makes of it: {"error": message} or {"items": [{task, identifier, options, payload, fires: "0110…"}]}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { parseCrontab } = await import(pathToFileURL(process.argv[2]).href);
const { crontabs, digests } = JSON.parse(readFileSync(0, "utf8"));

const plain = ({ task, identifier, options, payload, match }) => ({
  task,
  identifier,
  options,
  payload,
  fires: digests.map((digest) => (match(digest) ? "1" : "0")).join(""),
});

const answers = crontabs.map((text) => {
  try {
    return { items: parseCrontab(text).map(plain) };
  } catch (error) {
    return { error: String(error.message) };
  }
});
process.stdout.write(JSON.stringify(answers));
