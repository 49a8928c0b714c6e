// One mission: how far it is, what runs, and its graph.

import { get } from "./api.js";
import { h } from "./dom.js";
import { duration, number, percent, plural } from "./format.js";
import { picture } from "./graph.js";
import { STATES, chip, name as nameOf, progress, taskLink } from "./parts.js";
import { ago } from "./times.js";

export const name = "mission";
export const every = 5000;

export async function load(app, options) {
  const name = app.query.name;
  const [{ mission }, drawing] = await Promise.all([get("v1/mission", { name }, options), get("drawing", { mission: name }, options).catch(() => null)]);
  return { mission, drawing };
}

export function render({ mission, drawing }) {
  const wanted = mission.total - mission.counts.cancelled;
  const rate = mission.rates?.hour.done ?? 0;
  const left = wanted - mission.counts.done;
  const address = `#/board?mission=${encodeURIComponent(mission.name)}`;
  const list = (title, tasks, more) => tasks.length > 0 && h("section", { key: title, class: "part" }, h("h2", {}, title), h("ul", { class: "plain" }, tasks.map((task) => h("li", { key: task.id, class: "dependency" }, h("a", { href: taskLink(task.id), "data-item": true }, nameOf(task)), more(task)))));
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/missions" }, "Missions"), " / ", mission.name),
    h("div", { class: "headline" }, h("h1", {}, mission.name), h("a", { class: "button", href: address }, "Its tasks")),
    mission.brief && h("p", { class: "brief" }, mission.brief),
    h("div", { class: "big-progress" }, h("p", { "data-progress": true }, h("strong", {}, `${number(mission.counts.done)} of ${number(wanted)}`), ` done, ${percent(mission.progress) || "0 %"}`), h("p", { class: "quiet" }, `${plural(mission.rates?.minute.done ?? 0, "task")} in the last minute, ${number(rate)} in the last hour${rate > 0 && left > 0 ? `; at this rate ${duration((left / rate) * 3600)} are left` : ""}`), progress(mission.progress ?? 0, `${mission.name}: ${percent(mission.progress)}`)),
    h("div", { class: "meta" }, STATES.filter((state) => mission.counts[state]).map((state) => h("a", { key: state, href: `${address}&state=${state}`, class: "state-count" }, chip(state), number(mission.counts[state])))),
    h("div", { class: "columns" }, h("div", { class: "column" }, list("Running", mission.running, (task) => h("span", { class: "meta" }, h("span", {}, task.worker), task.progress !== null && h("span", {}, percent(task.progress))))), h("div", { class: "column" }, list("Failed", mission.failed, (task) => h("span", { class: "error-text" }, task.reason ?? "")), list("Next", mission.next, (task) => h("span", { class: "quiet" }, `priority ${task.priority}`)))),
    drawing && drawing.nodes.length > 0 && h("section", { class: "part", "data-part": "Graph" }, h("h2", {}, "Graph"), drawing.folded && h("p", { class: "quiet" }, `${plural(drawing.folded.tasks, "task")}, folded by ${drawing.folded.by}`), picture(drawing)),
    ago(mission.created_at, "Begun ", " ago"),
  ];
}
