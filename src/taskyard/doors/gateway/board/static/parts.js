// What several pages show: a state, a card, a filter bar, a progress bar, JSON.

import { h } from "./dom.js";
import { duration, json, now, number, percent, plural } from "./format.js";
import { ago, lease } from "./times.js";

export const STATES = ["waiting", "blocked", "todo", "processing", "done", "failed", "cancelled"];

export const chip = (state, words = state) => h("span", { class: `chip ${state}` }, words);

export const taskLink = (id) => `#/task/${encodeURIComponent(id)}`;

export const name = (task) => task.title ?? task.kind;

/** A card of a lane. */
export function card(task) {
  return h(
    "li",
    { key: task.id, class: `card ${task.state}`, "data-task": task.id },
    h("a", { href: taskLink(task.id), "data-item": true, class: "card-title" }, name(task)),
    h("div", { class: "meta" }, h("span", { class: "mono" }, task.short), h("span", {}, task.kind), task.priority !== 5 && h("span", {}, `priority ${task.priority}`), task.mission && h("span", {}, task.mission)),
    h("div", { class: "meta" }, facts(task)),
    task.progress !== null && progress(task.progress, `${task.short} is ${percent(task.progress)} done`),
    lease(task),
    task.state === "failed" && task.error && h("p", { class: "card-error" }, task.error),
  );
}

function facts(task) {
  const who = task.worker ?? (task.assignee ? `for ${task.assignee}` : null);
  return [
    who && h("span", { class: "who" }, who),
    task.review === "pending" ? h("span", { class: "chip waiting" }, "to review") : null,
    task.state === "waiting" && task.not_before ? h("span", {}, due(task.not_before)) : ago(task.since ?? task.created_at, "", task.since ? "" : " old"),
    task.attempts > 0 && h("span", {}, `attempt ${task.attempts + (task.state === "failed" ? 0 : 1)} of ${task.max_attempts}`),
    task.progress !== null && h("span", {}, percent(task.progress)),
  ];
}

function due(moment) {
  const left = (Date.parse(moment) - now()) / 1000;
  return left > 0 ? `due in ${duration(left)}` : "due";
}

export function progress(share, label) {
  return h("div", { class: "progress", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(share * 100)), "aria-label": label }, h("div", { style: { width: `${share * 100}%` } }));
}

/** A block of JSON or text, which can be scrolled by keyboard too. */
export function block(value, label) {
  return h("pre", { class: "block", tabindex: "0", role: "region", "aria-label": label }, json(value));
}

let pause = 0;

/** Fields that filter a page; what they hold is in the address. */
export function filters(app, fields, kinds = []) {
  const change = (event) => {
    clearTimeout(pause);
    const { form } = event.target; // all fields: another one may have been changed a moment ago
    const said = () => Object.fromEntries(fields.map(([name]) => [name, form.elements[name].value.trim()]));
    pause = setTimeout(() => app.filter({ ...said(), search: "" }), event.type === "change" ? 0 : 250);
  };
  const field = ([name, title, search]) =>
    h(
      "label",
      { key: name, class: search ? "field grows" : "field" },
      h("span", {}, title),
      h("input", { name, value: app.query[name] ?? "", type: "search", list: name === "kind" ? "kinds" : null, "data-search": search || null, autocomplete: "off", spellcheck: "false", on: { input: change, change } }),
    );
  const active = fields.some(([name]) => app.query[name]);
  return h(
    "form",
    { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
    fields.map(field),
    h("datalist", { id: "kinds" }, kinds.map((kind) => h("option", { key: kind, value: kind }))),
    active && h("button", { type: "button", class: "button small", on: { click: () => app.filter(Object.fromEntries(fields.map(([name]) => [name, ""]))) } }, "Clear"),
  );
}

/** "20 of 1,234", or how many at least. */
export function ofMany(shown, count) {
  if (count === null || count === undefined) return `${number(shown)} and more`;
  return shown < count ? `${number(shown)} of ${number(count)}` : number(count);
}

export const empty = (text) => h("p", { class: "quiet empty" }, text);

export { plural };
