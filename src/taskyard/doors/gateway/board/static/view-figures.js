// The last hour in plots: throughput, backlog, and how long things take.

import { get } from "./api.js";
import { h } from "./dom.js";
import { clock, duration, number } from "./format.js";

export const name = "figures";
export const every = 15_000;
const WIDTH = 600;
const HEIGHT = 150;

export const load = async (app, options) => (await get("v1/series", {}, options)).series;

export function render(data) {
  const sum = (list) => list.reduce((total, value) => total + (value ?? 0), 0);
  const last = (list) => list.findLast((value) => value !== null);
  const whole = data.since > data.begin;
  return [
    h("div", { class: "headline" }, h("h1", {}, "Figures"), h("p", { class: "quiet" }, "The last hour, by the minute")),
    whole && h("p", { class: "quiet" }, `The log is too busy to be read for the whole hour; these are the figures since ${clock(data.since)}.`),
    h(
      "div",
      { class: "plots" },
      plot("Done a minute", `${number(sum(data.counts.done))} in the hour`, [["done", data.counts.done]], data, number),
      plot("Failed and lost", `${number(sum(data.counts.failed))} failed, ${number(sum(data.counts.reaped))} lost`, [["failed", data.counts.failed], ["reaped", data.counts.reaped]], data, number),
      plot("Added a minute", `${number(sum(data.counts.added))} in the hour`, [["added", data.counts.added]], data, number),
      plot("Open tasks", `${number(last(data.backlog) ?? 0)} now`, [["backlog", data.backlog]], data, number, true),
      plot("From add to claim", median(last(data.wait)), [["wait", data.wait]], data, duration, true),
      plot("From claim to done", median(last(data.run)), [["run", data.run]], data, duration, true),
    ),
  ];
}

const median = (seconds) => (seconds === undefined ? "no claim in the hour" : `median ${duration(seconds)}`);

function plot(title, summary, lines, data, words, area = false) {
  const top = Math.max(1, ...lines.flatMap(([, values]) => values.map((value) => value ?? 0)));
  const count = lines[0][1].length;
  const x = (at) => (at / count) * WIDTH;
  const y = (value) => HEIGHT - (value / top) * (HEIGHT - 8);
  const label = (at) => clock(new Date(Date.parse(data.begin) + at * data.step * 1000).toISOString()).slice(0, 5);
  const marks = lines.map(([name, values], place) => (area ? line(name, values, x, y) : values.map((value, at) => value > 0 && h("rect", { x: (x(at) + (place * WIDTH) / count / lines.length).toFixed(1), y: y(value).toFixed(1), width: Math.max(1.5, WIDTH / count / lines.length - 1.5).toFixed(1), height: (HEIGHT - y(value)).toFixed(1), class: `bar-${name}` }, h("title", {}, `${label(at)}: ${words(value)} ${name}`)))));
  return h(
    "figure",
    { key: title, class: "plot", "data-plot": title },
    h("figcaption", {}, h("h2", {}, title), h("span", { class: "quiet" }, summary)),
    h("div", { class: "plot-frame" }, h("span", { class: "plot-top" }, words(top)), h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${summary}, at most ${words(top)} in a minute` }, h("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: "rule" }), h("line", { x1: 0, x2: WIDTH, y1: 8, y2: 8, class: "rule faint" }), marks)),
    h("div", { class: "plot-axis", "aria-hidden": "true" }, h("span", {}, label(0)), h("span", {}, label(count / 2)), h("span", {}, "now")),
  );
}

function line(name, values, x, y) {
  const parts = [];
  let part = [];
  values.forEach((value, at) => {
    if (value === null) {
      if (part.length) parts.push(part);
      part = [];
    } else part.push([x(at + 0.5), y(value)]);
  });
  if (part.length) parts.push(part);
  return parts.map((points) => (points.length === 1 ? h("circle", { cx: points[0][0], cy: points[0][1], r: 3, class: `dot-${name}` }) : h("polyline", { points: points.map((point) => point.map((one) => one.toFixed(1)).join(",")).join(" "), class: `line-${name}` })));
}
