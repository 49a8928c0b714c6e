// What happens, as it happens: who did what.

import { get } from "./api.js";
import { h } from "./dom.js";
import { clock, moment, number } from "./format.js";
import { empty, filters, taskLink } from "./parts.js";

export const name = "events";
export const every = 60_000;
const KEPT = 300;
const FIELDS = [
  ["text", "Any word", true],
  ["event", "Event"],
  ["kind", "Kind"],
  ["worker", "Worker"],
];
let kept = { key: null, events: [], left_out: 0 };
let held = false; // whether the list stands still for a reader

export async function load(app, options) {
  const { event, kind, worker } = app.query;
  const key = JSON.stringify([event, kind, worker]);
  if (kept.key === key && kept.events.length && app.stream?.connected) return kept;
  const answer = await get("v1/events", { event, kind, worker, newest: "true", limit: KEPT }, options);
  kept = { key, events: answer.events.reverse(), left_out: 0 };
  return kept;
}

/** Take in a tick; the list is drawn with the next look, at most once a second. */
export function tick({ events, left_out }, app) {
  if (held) return;
  const known = new Set(kept.events.slice(0, 200).map(identity));
  const fresh = events.filter((event) => fits(event, app.query) && !known.has(identity(event)));
  kept.events = [...fresh.reverse(), ...kept.events].slice(0, KEPT);
  kept.left_out += left_out;
}

const identity = (event) => `${event.at} ${event.event} ${event.task} ${event.fence}`;

function fits(event, query) {
  if (query.event && event.event !== query.event) return false;
  if (query.kind && event.kind !== query.kind) return false;
  return !query.worker || event.worker === query.worker || event.by === query.worker;
}

export function render(data, app) {
  const word = (app.query.text ?? "").toLowerCase();
  const shown = word ? data.events.filter((event) => JSON.stringify(event).toLowerCase().includes(word)) : data.events;
  return [
    h("div", { class: "headline" }, h("h1", {}, "Events"), h("button", { class: "button small", type: "button", "aria-pressed": String(held), on: { click: () => hold(app) } }, held ? "Go on" : "Hold")),
    filters(app, FIELDS),
    data.left_out > 0 && h("p", { class: "quiet" }, `${number(data.left_out)} more events came too fast to be shown; the log has all of them.`),
    shown.length === 0 && empty("Nothing of the kind has happened yet."),
    h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Events" }, h("table", {}, h("thead", {}, h("tr", {}, ["Time", "Event", "Task", "Kind", "Worker", "By", "Details"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, shown.map(row)))),
  ];
}

function hold(app) {
  held = !held;
  if (!held) kept.key = null;
  app.refresh();
}

function row(event) {
  const rest = event.reason ?? event.text ?? event.verb ?? event.mission ?? event.schedule ?? event.token ?? "";
  return h(
    "tr",
    { key: identity(event), class: `event-${event.event}`, "data-event": event.event },
    h("td", { class: "mono", title: moment(event.at) }, clock(event.at)),
    h("td", {}, h("span", { class: `event ${event.event}` }, event.event.replace("_", " "))),
    h("td", {}, event.short ? h("a", { href: taskLink(event.task), "data-item": true, class: "mono" }, event.short) : event.task),
    h("td", {}, event.kind ?? ""),
    h("td", {}, event.worker ?? ""),
    h("td", {}, event.by !== event.worker ? (event.by ?? "") : ""),
    h("td", { class: "quiet rest" }, rest),
  );
}
