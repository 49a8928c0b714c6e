// All missions, with how far each is.

import { get } from "./api.js";
import { h } from "./dom.js";
import { number, percent, plural } from "./format.js";
import { chip, empty, progress } from "./parts.js";
import { ago } from "./times.js";

export const name = "missions";
export const every = 8000;

export const load = async (app, options) => (await get("v1/missions", {}, options)).missions;

const CHIPS = { running: "processing", open: "todo", empty: "waiting" };

export function render(missions) {
  const order = ["running", "failed", "open", "empty", "done", "cancelled"];
  const sorted = [...missions].sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state) || one.name.localeCompare(other.name));
  return [
    h("div", { class: "headline" }, h("h1", {}, "Missions"), h("p", { class: "quiet" }, plural(missions.length, "mission"))),
    missions.length === 0 && empty("No task names a mission yet. A mission groups tasks: taskyard add KIND --mission NAME."),
    h(
      "ul",
      { class: "rows" },
      sorted.map((mission) => {
        const wanted = mission.total - mission.counts.cancelled;
        return h(
          "li",
          { key: mission.name, class: "row tall", "data-mission": mission.name },
          h("div", { class: "row-main" }, h("a", { href: `#/mission?name=${encodeURIComponent(mission.name)}`, "data-item": true, class: "row-title" }, mission.name), h("div", { class: "meta" }, chip(CHIPS[mission.state] ?? mission.state, mission.state), h("span", {}, `${number(mission.counts.done)} of ${number(wanted)}`), mission.counts.processing > 0 && h("span", {}, `${number(mission.counts.processing)} running`), mission.counts.failed > 0 && h("span", { class: "error-text" }, `${number(mission.counts.failed)} failed`), mission.owner && h("span", {}, mission.owner), ago(mission.created_at, "", " old")), progress(mission.progress ?? 0, `${mission.name}: ${percent(mission.progress)}`)),
        );
      }),
    ),
  ];
}
