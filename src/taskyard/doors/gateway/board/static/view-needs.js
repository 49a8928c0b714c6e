// What waits for a person, before anything else.

import { get, post, task as taskPath } from "./api.js";
import { h } from "./dom.js";
import { number, plural } from "./format.js";
import { chip, empty, name as nameOf, taskLink } from "./parts.js";
import { ago } from "./times.js";

export const name = "needs";
export const every = 10_000;

export const load = async (app, options) => (await get("v1/overview", {}, options)).overview;

const SORTS = [
  ["reviews", "To review", "Somebody says it is done, and another one has to agree."],
  ["file_conflicts", "Edited in a file and here", "Both sides have changed the same words. Edit either one, or take the remark out of the file: the next sync settles it."],
  ["conflicts", "Brought too late", "A worker that had lost its claim brought a result. The task's page keeps it for you to read."],
  ["failed", "Failed for good", "No attempt is left. Retry it, or leave it as it is."],
  ["stuck", "Stuck behind these", "Others wait for a task that failed or was cancelled. They go on if it is retried and done."],
  ["unserved", "Kinds that no worker serves", "Tasks wait, and no worker has asked for their kind within the hour."],
  ["paused", "Paused", "Nothing of it is handed out until it goes on."],
  ["set_aside", "Files set aside", "They were dropped and can be no tasks. Put them right, then retry."],
];

export function render(data, app) {
  const sorts = SORTS.filter(([sort]) => data.needs[sort].count > 0);
  return [
    h("div", { class: "headline" }, h("h1", {}, data.count ? `${plural(data.count, "thing needs", "things need")} you` : "Nothing needs you"), glance(data)),
    sorts.length === 0 && empty("The crew goes on by itself. This page tells you when that changes, and so does the tab."),
    sorts.map(([sort, title, about]) => section(sort, title, about, data.needs[sort], app)),
  ];
}

function glance(data) {
  const { counts, rates } = data;
  const pairs = [
    ["ready", counts.todo, "todo"],
    ["running", counts.processing, "processing"],
    ["blocked", counts.blocked, "blocked"],
    ["done in the last hour", rates.hour.done, "done"],
  ];
  return h("dl", { class: "glance" }, pairs.map(([title, value]) => h("div", { key: title }, h("dt", {}, title), h("dd", {}, number(value)))));
}

function section(sort, title, about, part, app) {
  return h(
    "section",
    { key: sort, class: "sort", "aria-labelledby": `sort-${sort}`, "data-sort": sort },
    h("h2", { id: `sort-${sort}` }, title, h("span", { class: "count" }, number(part.count))),
    h("p", { class: "quiet" }, about),
    h("ul", { class: "rows" }, part.entries.map((entry) => ENTRIES[sort](entry, app))),
    part.count > part.entries.length && sort === "failed" && h("p", {}, h("a", { href: "#/board?state=failed" }, `All ${number(part.count)}`)),
  );
}

const row = (entry, details, actions, key = entry.id) =>
  h(
    "li",
    { key, class: "row", "data-task": entry.id },
    h("div", { class: "row-main" }, h("a", { href: taskLink(entry.id), "data-item": true, class: "row-title" }, nameOf(entry)), h("div", { class: "meta" }, h("span", { class: "mono" }, entry.short), h("span", {}, entry.kind), details)),
    h("div", { class: "row-actions" }, actions),
  );

const said = (words) => (typeof words === "string" ? words : JSON.stringify(words ?? null));

const button = (title, about, act) => h("button", { class: "button small", type: "button", "aria-label": `${title}: ${about}`, on: { click: act } }, title);

const retry = (entry, app) => app.may("manage") && button("Retry", nameOf(entry), () => app.act(() => post(taskPath(entry.id, "retry")), `${entry.short} is tried again`));

const ENTRIES = {
  reviews: (entry, app) =>
    row(entry, [entry.by && h("span", {}, `by ${entry.by}`), ago(entry.at ?? entry.created_at, "", " ago")], [
      app.may("work") && button("Accept", nameOf(entry), () => app.act(() => post(taskPath(entry.id, "accept")), `${entry.short} is accepted`)),
      h("a", { class: "button small", href: taskLink(entry.id), "aria-label": `Read: ${nameOf(entry)}` }, "Read"),
    ]),
  file_conflicts: (entry) =>
    row(
      entry,
      [
        h("span", { class: "mono" }, entry.line ? `${entry.file}:${entry.line}` : entry.file),
        h("span", { class: "sides" }, h("span", {}, `${entry.field} in the file: `, h("q", {}, said(entry.in_file))), h("span", {}, "here: ", h("q", {}, said(entry.in_yard)))),
        ago(entry.at, "", " ago"),
      ],
      h("a", { class: "button small", href: taskLink(entry.id), "aria-label": `Open: ${nameOf(entry)}` }, "Open"),
      `${entry.file} ${entry.id} ${entry.field}`,
    ),
  conflicts: (entry) => row(entry, [chip(entry.state), entry.by && h("span", {}, `by ${entry.by}`), ago(entry.at, "", " ago")], [h("a", { class: "button small", href: taskLink(entry.id), "aria-label": `Read: ${nameOf(entry)}` }, "Read")]),
  failed: (entry, app) => row(entry, [ago(entry.at, "", " ago"), entry.error && h("span", { class: "error-text" }, entry.error)], retry(entry, app)),
  stuck: (entry, app) => row(entry, [chip(entry.state), h("span", {}, `${plural(entry.blocked, "task waits", "tasks wait")} behind it`)], retry(entry, app)),
  unserved: (entry) =>
    h(
      "li",
      { key: entry.kind, class: "row" },
      h("div", { class: "row-main" }, h("a", { href: `#/board?kind=${encodeURIComponent(entry.kind)}`, "data-item": true, class: "row-title" }, entry.kind), h("div", { class: "meta" }, h("span", {}, `${plural(entry.count, "task")} ready`), entry.since ? ago(entry.since, "last asked for ", " ago") : h("span", {}, "never asked for"))),
    ),
  paused: (entry, app) =>
    h(
      "li",
      { key: entry.kind ?? "the whole yard", class: "row" },
      h("div", { class: "row-main" }, h("span", { class: "row-title" }, entry.kind ?? "The whole yard")),
      h("div", { class: "row-actions" }, app.may("manage") && button("Go on", entry.kind ?? "the whole yard", () => app.act(() => post("v1/unpause", entry.kind ? { kind: entry.kind } : {}), "It goes on"))),
    ),
  set_aside: (entry, app) =>
    h(
      "li",
      { key: entry.name, class: "row" },
      h("div", { class: "row-main" }, h("span", { class: "row-title mono" }, entry.name), h("div", { class: "meta" }, h("span", { class: "error-text" }, entry.reason))),
      h("div", { class: "row-actions" }, app.may("manage") && button("Retry", entry.name, () => app.act(() => post(taskPath(entry.name, "retry")), `${entry.name} is taken in again`))),
    ),
};
