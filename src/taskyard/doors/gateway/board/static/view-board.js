// The lanes: one for each state, with cards that move as the crew works.

import { get } from "./api.js";
import { bulk } from "./bulk.js";
import { h } from "./dom.js";
import { number, percent, plural } from "./format.js";
import { STATES, card, filters, ofMany, progress } from "./parts.js";

export const name = "board";
export const every = 4000;

const FIELDS = [
  ["text", "Title or id", true],
  ["kind", "Kind"],
  ["mission", "Mission"],
  ["worker", "Worker"],
  ["assignee", "Assignee"],
];
const TITLES = { waiting: "Waiting", blocked: "Blocked", todo: "Ready", processing: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled" };
const ACTIONS = {
  waiting: [["retry", "Make ready"], ["cancel", "Cancel all"]],
  blocked: [["cancel", "Cancel all"]],
  todo: [["cancel", "Cancel all"]],
  processing: [["release", "Release all"], ["cancel", "Cancel all"]],
  failed: [["retry", "Retry all"]],
  cancelled: [["retry", "Retry all"]],
};

let more = {}; // lanes that were asked for more, with what came

const chosen = ({ text, kind, mission, worker, assignee }) => ({ text, kind, mission, worker, assignee });

export async function load(app, options) {
  const query = chosen(app.query);
  const state = STATES.includes(app.query.state) ? app.query.state : null;
  const key = JSON.stringify([query, state]);
  if (more.key !== key) more = { key };
  const [answer, overview, mission] = await Promise.all([
    get("v1/lanes", { ...query, state, limit: state ? 100 : 20 }, options),
    get("v1/overview", {}, { signal: options.signal }),
    query.mission ? get("v1/mission", { name: query.mission }, options).catch(() => null) : null,
  ]);
  return { ...answer, state, kinds: overview.overview.kinds, counts: overview.overview.counts, mission: mission?.mission };
}

export function render(data, app) {
  const query = chosen(app.query);
  const filtered = Object.values(query).some(Boolean);
  const lanes = Object.entries(data.lanes);
  const known = lanes.every(([, lane]) => lane.count !== null);
  const matching = lanes.reduce((sum, [, lane]) => sum + (lane.count ?? lane.tasks.length), 0);
  const all = Object.values(data.counts).reduce((sum, count) => sum + count, 0);
  return [
    h("div", { class: "headline" }, h("h1", {}, data.state ? TITLES[data.state] : "Board"), h("p", { class: "quiet", "data-matching": matching }, filtered ? `${number(matching)}${known ? "" : " and more"} of ${plural(all, "task")}` : plural(all, "task"), data.state && [" · ", h("a", { href: "#/board" }, "all lanes")])),
    filters(app, FIELDS, data.kinds),
    data.mission && missionLine(data.mission),
    h("div", { class: data.state ? "lanes single" : "lanes" }, lanes.map(([state, lane]) => column(state, lane, data, app))),
  ];
}

function missionLine(mission) {
  const wanted = mission.total - mission.counts.cancelled;
  const rate = mission.rates ? ` · ${plural(mission.rates.hour.done, "task")} done in the last hour` : "";
  return h("div", { class: "mission-line" }, h("a", { href: `#/mission?name=${encodeURIComponent(mission.name)}` }, mission.name), h("span", {}, `${number(mission.counts.done)} of ${number(wanted)} done (${percent(mission.progress) || "0 %"})${rate}`), progress(mission.progress ?? 0, `${mission.name}: ${percent(mission.progress)}`));
}

function column(state, lane, data, app) {
  const extra = more[state];
  const known = new Set(lane.tasks.map((task) => task.id));
  const tasks = [...lane.tasks, ...(extra?.tasks ?? []).filter((task) => !known.has(task.id))];
  const next = extra ? extra.next : lane.next;
  const actions = app.may("manage") && tasks.length > 0 ? (ACTIONS[state] ?? []) : [];
  return h(
    "section",
    { key: state, class: tasks.length ? "lane" : "lane bare", "aria-labelledby": `lane-${state}`, "data-lane": state },
    h("h2", { id: `lane-${state}` }, h("a", { href: laneAddress(state, app) }, TITLES[state]), h("span", { class: "count", "data-count": lane.count ?? "" }, ofMany(tasks.length, lane.count))),
    app.may("manage") && h("div", { class: "lane-actions" }, actions.map(([verb, title]) => h("button", { class: "link", type: "button", "aria-label": `${title} in ${TITLES[state]}`, on: { click: () => bulk(verb, state, chosen(app.query), app) } }, `${title} …`))),
    h("ul", { class: "cards" }, tasks.map(card)),
    next && h("button", { class: "button small", type: "button", on: { click: () => longer(state, next, app) } }, "Show more"),
  );
}

function laneAddress(state, app) {
  const query = new URLSearchParams(Object.entries({ ...chosen(app.query), state }).filter(([, value]) => value));
  return `#/board?${query}`;
}

/** Read the next page of a lane; pages go on from the last task, and so cost the same however far they are. */
async function longer(state, cursor, app) {
  try {
    const answer = await get("v1/lanes", { ...chosen(app.query), state, cursor, limit: 100 });
    const lane = answer.lanes[state];
    more[state] = { tasks: [...(more[state]?.tasks ?? []), ...lane.tasks], next: lane.next };
    app.draw();
  } catch (error) {
    app.tell(error);
  }
}
