// All about one task, why it is where it is, and what a person can do about it.

import { get, patch, post, task as path } from "./api.js";
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { duration, moment, now, percent } from "./format.js";
import { picture } from "./graph.js";
import { block, chip, empty, name as nameOf, progress, taskLink } from "./parts.js";
import { form, values } from "./task-form.js";
import { ago, lease } from "./times.js";

export const name = "task";
export const every = 3000;
let editing = null;

export async function load(app, options) {
  const id = app.rest;
  const report = await get(path(id), {}, options);
  const whole = report.task.id;
  const [why, log, drawing, output, lanes] = await Promise.all([
    get("v1/why", { id: whole }, options).catch(() => null),
    get("v1/events", { task: whole, limit: 500 }, options).catch(() => null),
    report.task.after.length || report.dependents.length ? get("drawing", { task: whole }, options).catch(() => null) : null,
    get(path(whole, "output"), {}, options).catch(() => null),
    report.task.state === "processing" ? get("v1/lanes", { state: "processing", text: whole, limit: 1 }, options).catch(() => null) : null,
  ]);
  return { ...report, why: why?.why, events: log?.events ?? [], drawing, output: output?.output ?? [], card: lanes?.lanes.processing.tasks[0] };
}

export function render(data, app) {
  const { task } = data;
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/board" }, "Board"), " / ", h("span", { class: "mono" }, task.short)),
    h("div", { class: "headline" }, h("h1", {}, nameOf(task)), h("div", { class: "actions" }, actions(data, app))),
    h("div", { class: "meta" }, chip(task.review === "pending" ? "waiting" : task.state, task.review === "pending" ? "to review" : task.state), h("span", {}, task.kind), h("span", {}, `priority ${task.priority}`), task.mission && h("a", { href: `#/mission?name=${encodeURIComponent(task.mission)}` }, task.mission), task.worker && h("span", {}, `with ${task.worker}`), task.assignee && h("span", {}, `for ${task.assignee}`), ago(task.created_at, "added ", " ago")),
    data.why?.message && h("div", { key: "why", "data-why": true }, h("p", { class: "why" }, sentence(data.why.message)), data.why.next && h("p", { class: "quiet" }, sentence(data.why.next))),
    task.progress !== null && progress(task.progress, `${percent(task.progress)} done`),
    data.card && lease(data.card),
    editing === task.id && app.may("manage") && editor(task, app),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "column" }, task.error && part("Last error", h("pre", { class: "block error", tabindex: "0", role: "region", "aria-label": "Last error" }, task.error)), result(data), part("Data", block(task.data, "Data")), output(data), stale(data)),
      h("div", { class: "column" }, part("Attempts", attempts(data)), data.notes.length > 0 && part("Notes", notes(data)), dependencies(data), part("What happened", log(data)), part("Details", details(task))),
    ),
    data.drawing && part("Graph", picture(data.drawing, task.id)),
  ];
}

const sentence = (text) => text.replace(/^it /, "It ").replace(/([^.!?])$/, "$1.");

const part = (title, ...content) => h("section", { key: title, class: "part", "data-part": title }, h("h2", {}, title), content);

// Actions

function actions(data, app) {
  const { task } = data;
  const found = [];
  const add = (title, work, kind = "") => found.push(h("button", { key: title, type: "button", class: `button ${kind}`, on: { click: work } }, title));
  const pending = task.review === "pending";
  if (pending && app.may("work")) {
    add("Accept", () => app.act(() => post(path(task.id, "accept")), "Accepted"), "main");
    add("Reject", () => reject(task, app));
  }
  if (!app.may("manage")) return found;
  if (["failed", "cancelled"].includes(task.state)) add("Retry", () => app.act(() => post(path(task.id, "retry")), "It is tried again"), "main");
  if (task.state === "waiting" && !pending) add("Make ready now", () => app.act(() => post(path(task.id, "retry")), "It is ready"), "main");
  if (task.state === "processing") add("Release", () => release(task, app));
  if (["todo", "waiting", "blocked"].includes(task.state)) add(editing === task.id ? "Close the form" : "Edit", () => edit(editing === task.id ? null : task.id, app));
  if (!["done", "failed", "cancelled"].includes(task.state)) add("Cancel", () => cancel(task, app), "danger");
  return found;
}

async function reject(task, app) {
  const note = await ask(`Reject ${task.short}?`, "It goes back to be done again. The next worker reads your note.", "Reject", "What is missing");
  if (note) await app.act(() => post(path(task.id, "reject"), { note }), "Rejected");
}

async function cancel(task, app) {
  const running = task.state === "processing";
  const reason = await ask(`Cancel ${task.short}?`, running ? `${task.worker} loses it, and its process is stopped.` : "It is not handed out any more. It can be retried later.", "Cancel the task", "Why (may be left empty)", true);
  if (reason !== null) await app.act(() => post(path(task.id, "cancel"), reason ? { reason } : {}), "Cancelled");
}

async function release(task, app) {
  const sure = await ask(`Release ${task.short}?`, `${task.worker} loses it, and another worker may take it at once. It counts as no attempt.`, "Release it");
  if (sure) await app.act(() => post("v1/bulk", { verb: "release", ids: [task.id], apply: true }), "Released");
}

function edit(id, app) {
  editing = id;
  app.draw();
}

function editor(task, app) {
  const submit = async (event) => {
    event.preventDefault();
    const changed = values(event.target, task);
    if (changed === null) return;
    await app.act(() => patch(path(task.id), changed), "Changed");
    edit(null, app);
  };
  return h("section", { key: "edit", class: "part" }, h("h2", {}, "Edit"), form(task, "Save", submit, true));
}

// What is known

function result(data) {
  const { task } = data;
  const submitted = task.review === "pending" ? data.history.at(-1)?.result : undefined;
  if (submitted !== undefined) return part("Submitted", block(submitted, "Submitted"));
  return task.result !== null && part("Result", block(task.result, "Result"));
}

function output(data) {
  if (!data.output.length) return null;
  return part("Output", data.output.map((file) => [h("p", { class: "quiet" }, `${file.name}${file.size > file.text.length ? `, the end of ${file.size.toLocaleString("en-US")} bytes` : ""}, attempt with fence ${file.fence}`), h("pre", { key: file.name, class: "block log", tabindex: "0", role: "region", "aria-label": file.name, "data-output": file.name }, file.text || "(empty)")]));
}

function stale(data) {
  if (!data.stale_results.length) return null;
  return part("Brought too late", h("ul", { class: "plain" }, data.stale_results.map((late, at) => h("li", { key: at }, h("p", { class: "quiet" }, `${late.worker ?? "?"}, fence ${late.fence}, ${moment(late.at)}${late.reason ? `: ${late.reason}` : ""}`), block(late.result ?? null, "A late result")))));
}

/** The timeline of attempts: which fence, who, how long, and how each ended. */
function attempts(data) {
  const { task } = data;
  const begun = Object.fromEntries(data.events.filter((event) => event.event === "claimed").map((event) => [event.fence, event.at]));
  const rows = data.history.map((entry) => ({ ...entry, begin: begun[entry.fence] }));
  if (task.state === "processing") rows.push({ fence: task.fence, worker: task.worker, outcome: "processing", begin: begun[task.fence] });
  if (!rows.length) return empty("No worker has claimed it yet.");
  return h(
    "ol",
    { class: "timeline" },
    rows.map((row) =>
      h(
        "li",
        { key: row.fence, class: row.outcome },
        h("div", { class: "meta" }, h("strong", {}, row.worker ?? "?"), chip(row.outcome === "processing" ? "processing" : row.outcome, row.outcome === "processing" ? "running" : row.outcome), h("span", { class: "mono" }, `fence ${row.fence}`), row.begin && h("span", {}, row.at ? `took ${duration((Date.parse(row.at) - Date.parse(row.begin)) / 1000)}` : `for ${duration((now() - Date.parse(row.begin)) / 1000)}`), row.at && ago(row.at, "", " ago")),
        row.reason && h("p", { class: "reason" }, row.reason),
      ),
    ),
  );
}

const notes = (data) => h("ul", { class: "plain" }, data.notes.map((note, at) => h("li", { key: at }, h("p", { class: "note" }, note.note ?? note.text), h("div", { class: "meta" }, h("span", {}, note.worker), ago(note.at, "", " ago")))));

function dependencies(data) {
  const { task, drawing } = data;
  if (!drawing) return null;
  const node = Object.fromEntries(drawing.nodes.map((one) => [one.id, one]));
  const up = drawing.edges.filter((edge) => edge.to === task.id).map((edge) => [edge.from, edge.on_failure]);
  const down = drawing.edges.filter((edge) => edge.from === task.id).map((edge) => [edge.to, edge.on_failure]);
  const list = (title, some) => some.length > 0 && [h("h3", {}, title), h("ul", { class: "plain" }, some.map(([id, policy]) => h("li", { key: id, class: "dependency" }, chip(node[id]?.state ?? "done"), h("a", { href: taskLink(id), "data-item": true }, node[id] ? (node[id].title ?? node[id].kind) : id), policy !== "block" && h("span", { class: "quiet" }, `on failure: ${policy}`))))];
  return part("Dependencies", list("Comes after", up), list("Others wait for it", down));
}

const log = (data) => h("ul", { class: "plain log-lines" }, data.events.slice(-40).reverse().map((event, at) => h("li", { key: `${event.at} ${event.event} ${at}` }, h("span", { class: "mono" }, event.event), h("span", {}, event.by), h("span", { class: "quiet" }, event.reason ?? event.text ?? ""), ago(event.at, "", " ago"))));

function details(task) {
  const pairs = [
    ["Id", task.id, "mono"],
    ["Fence", task.fence],
    ["Attempts", `${task.attempts} of ${task.max_attempts}`],
    ["Key", task.key],
    ["Uses", task.uses.join(", ")],
    ["Check", task.verify],
    ["Review", task.review],
    ["Due", task.review === "pending" ? null : task.not_before && moment(task.not_before)],
    ["Expires", task.expires && moment(task.expires)],
    ["Part of", task.parent],
    ["Found by", task.discovered_from],
    ["Dropped as", task.dropped_as],
  ];
  return h("dl", { class: "pairs" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([title, value, kind]) => h("div", { key: title, class: "pair" }, h("dt", {}, title), h("dd", { class: kind ?? "" }, String(value)))));
}
