// One action for all tasks of a lane that match: the count first, the progress after.

import { get, post } from "./api.js";
import { ask, panel } from "./dialog.js";
import { h } from "./dom.js";
import { number, plural } from "./format.js";
import { progress } from "./parts.js";
import { announce } from "./tab.js";

const WORDS = { retry: ["Retry", "retried"], cancel: ["Cancel", "cancelled"], release: ["Release", "released"] };
const LOOK = 400; // milliseconds between two looks at the progress

export async function bulk(verb, state, filters, app) {
  const [word, past] = WORDS[verb];
  try {
    const wanted = { verb, state: [state], ...Object.fromEntries(Object.entries(filters).filter(([, value]) => value)) };
    const { count } = await post("bulk", wanted);
    if (!count) {
      announce("Nothing matches any more");
      return app.refresh();
    }
    const about = Object.entries(filters).filter(([, value]) => value).map(([name, value]) => `${name} ${value}`);
    const sure = await ask(`${word} ${plural(count, "task")}?`, `All that are ${state}${about.length ? `, with ${about.join(", ")}` : ""}.`, `${word} ${plural(count, "task")}`, null, verb === "cancel");
    if (sure) await run(await post("bulk", { ...wanted, apply: true }), count, past, app);
  } catch (error) {
    app.tell(error);
  }
}

async function run(job, count, past, app) {
  const { update, close } = panel(`${number(count)} to go`);
  while (!job.over) {
    update(progress(job.total ? job.done / job.total : 0, "Progress"), h("p", { class: "quiet" }, `${number(job.done)} of ${number(job.total || count)}`));
    await new Promise((resolve) => setTimeout(resolve, LOOK));
    job = await get("bulk", { job: job.job });
  }
  const words = job.error ?? `${plural(job.changed, "task")} ${past}${job.refused ? `, ${number(job.refused)} not: they have moved on` : ""}.`;
  announce(words);
  update(
    progress(1, "Progress"),
    h("p", { "data-outcome": true }, words),
    job.reasons?.length > 0 && h("ul", { class: "plain" }, job.reasons.map((one) => h("li", { key: one.id }, one.reason))),
    h("div", { class: "buttons" }, h("button", { class: "button main", type: "button", on: { click: close } }, "Close")),
  );
  await app.refresh();
}
