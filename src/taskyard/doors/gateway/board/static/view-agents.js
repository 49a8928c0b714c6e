// Who is alive, on what, since when; and the last hour of each as a timeline.

import { get } from "./api.js";
import { h } from "./dom.js";
import { clock, duration, moment, now, number, percent, plural } from "./format.js";
import { empty, name as nameOf, progress, taskLink } from "./parts.js";
import { ago, lease } from "./times.js";

export const name = "agents";
export const every = 5000;
const HOUR = 3_600_000;
const WIDTH = 1000;
const ROW = 26;

export const load = async (app, options) => {
  const { agents } = await get("v1/agents", {}, options);
  return agents;
};

export function render(data) {
  const busy = data.agents.filter((agent) => agent.tasks.length);
  const agents = [...data.agents].sort((one, other) => (other.tasks.length > 0) - (one.tasks.length > 0) || one.worker.localeCompare(other.worker));
  return [
    h("div", { class: "headline" }, h("h1", {}, "Agents"), h("p", { class: "quiet" }, `${plural(busy.length, "worker")} at work, ${number(data.agents.length - busy.length)} without a task`)),
    data.agents.length === 0 ? empty("No worker has done anything in the last hour.") : [h("ul", { class: "agents" }, agents.map(agentRow)), timeline(data, agents)],
  ];
}

function condition(agent) {
  if (!agent.tasks.length) return ["idle", "idle"];
  const late = agent.tasks.some((task) => task.lease_until && Date.parse(task.lease_until) < now());
  return late ? ["late", "lease over"] : ["works", "at work"];
}

function agentRow(agent) {
  const [kind, words] = condition(agent);
  const { done, failed, reaped, refused } = agent.hour;
  return h(
    "li",
    { key: agent.worker, class: `agent ${kind}`, "data-agent": agent.worker },
    h("div", { class: "agent-head" }, h("h2", {}, agent.worker), h("span", { class: `state ${kind}` }, words)),
    h("div", { class: "meta" }, agent.heartbeat_at ? ago(agent.heartbeat_at, "heartbeat ", " ago") : ago(agent.last_at, "last seen ", " ago"), h("span", {}, `${plural(done, "task")} done in the hour`), failed > 0 && h("span", {}, `${number(failed)} failed`), reaped > 0 && h("span", { class: "error-text" }, `lost ${plural(reaped, "claim")}`), refused > 0 && h("span", { class: "error-text" }, `${plural(refused, "late word")} refused`)),
    h("ul", { class: "plain" }, agent.tasks.map((task) => h("li", { key: task.id, class: "holding" }, h("a", { href: taskLink(task.id), "data-item": true }, nameOf(task)), h("div", { class: "meta" }, h("span", { class: "mono" }, task.short), h("span", {}, task.kind), task.since ? ago(task.since, "for ") : h("span", {}, "for more than the log shows"), task.progress !== null && h("span", {}, percent(task.progress))), task.progress !== null && progress(task.progress, `${task.short} is ${percent(task.progress)} done`), lease(task)))),
  );
}

// The timeline

function timeline(data, agents) {
  const begin = Date.parse(data.begin);
  const x = (text) => Math.max(0, Math.min(WIDTH, ((Date.parse(text) - begin) / HOUR) * WIDTH));
  const rows = agents.map((agent, at) => row(agent, at, x, begin));
  const height = agents.length * ROW;
  const hours = [0, 10, 20, 30, 40, 50, 60].map((minute) => h("g", {}, h("line", { x1: (minute / 60) * WIDTH, x2: (minute / 60) * WIDTH, y1: 0, y2: agents.length * ROW, class: "rule" })));
  const since = data.since > data.begin ? `Only what happened since ${clock(data.since)} is drawn: the log is too busy to be read for the whole hour.` : null;
  return h(
    "section",
    { class: "part", "data-part": "Timeline" },
    h("h2", {}, "The last hour"),
    since && h("p", { class: "quiet" }, since),
    h("div", { class: "gantt" }, h("ul", { class: "gantt-names", "aria-hidden": "true" }, agents.map((agent) => h("li", { key: agent.worker, title: agent.worker }, agent.worker))), h("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": describe(agents), preserveAspectRatio: "none", style: { height: `${height}px` } }, hours, rows)),
    h("div", { class: "gantt-axis", "aria-hidden": "true" }, [60, 50, 40, 30, 20, 10].map((ago) => h("span", {}, `${ago} min ago`)), h("span", {}, "now")),
    h("p", { class: "legend" }, ["done", "failed", "running", "released"].map((how) => h("span", {}, h("i", { class: `swatch ${how}` }), how)), h("span", {}, h("i", { class: "swatch reaped" }), "killed or lapsed"), h("span", {}, h("i", { class: "swatch refused" }), "a late word refused")),
  );
}

const describe = (agents) => `What each worker did in the last hour: ${agents.map((agent) => `${agent.worker} ${agent.spans.length} claims, ${agent.hour.reaped} lost`).join("; ")}`;

function row(agent, at, x, begin) {
  const top = at * ROW;
  const spans = agent.spans.map((span) => {
    const from = span.begin ? x(span.begin) : 0;
    const to = span.end ? x(span.end) : WIDTH;
    const how = span.how ?? "running";
    const seconds = ((span.end ? Date.parse(span.end) : now()) - (span.begin ? Date.parse(span.begin) : begin)) / 1000;
    return h("rect", { x: from.toFixed(1), y: top + 5, width: Math.max(2, to - from - 0.5).toFixed(1), height: ROW - 10, rx: 2, class: `span ${how}`, "data-span": how }, h("title", {}, `${span.kind}, ${how}, ${duration(seconds)}${span.begin ? `, from ${clock(span.begin)}` : ""}`));
  });
  const marks = agent.marks.map((mark) => h("path", { d: glyph(x(mark.at), top + ROW / 2, mark.event), class: `mark ${mark.event}`, "data-mark": mark.event }, h("title", {}, `${mark.event === "reaped" ? "lost its claim" : "came too late"}, ${moment(mark.at)}${mark.reason ? `: ${mark.reason}` : ""}`)));
  return h("g", { key: agent.worker, "data-row": agent.worker }, spans, marks);
}

function glyph(x, y, event) {
  if (event === "reaped") return `M${x - 5} ${y - 8}L${x + 5} ${y + 8}M${x + 5} ${y - 8}L${x - 5} ${y + 8}`;
  return `M${x} ${y - 9}L${x + 6} ${y}L${x} ${y + 9}L${x - 6} ${y}Z`;
}
