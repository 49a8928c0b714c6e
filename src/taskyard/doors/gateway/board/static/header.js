// The bar at the top: where one is, what waits, and how the page is set.

import { h } from "./dom.js";
import { number } from "./format.js";
import { canNotify, toggleNotify, wantsNotify } from "./tab.js";

export const PAGES = [
  ["needs", "Needs you"],
  ["board", "Board"],
  ["agents", "Agents"],
  ["missions", "Missions"],
  ["figures", "Figures"],
  ["events", "Events"],
];

const WITHIN = { task: "board", mission: "missions", add: "board" };

export function header(app) {
  const signedIn = Boolean(app.session?.scope);
  const current = WITHIN[app.view?.name] ?? app.view?.name;
  return h(
    "div",
    { class: "bar", key: "bar" },
    h("a", { class: "brand", href: "#/needs" }, h("span", { class: "mark", "aria-hidden": "true" }), h("span", {}, app.session?.project ?? "Taskyard")),
    signedIn &&
      h(
        "nav",
        { "aria-label": "Pages" },
        PAGES.map(([name, title]) =>
          h(
            "a",
            { key: name, href: `#/${name}`, "aria-current": current === name ? "page" : null },
            title,
            name === "needs" && app.summary.needs > 0 && h("span", { class: "count", "data-needs": app.summary.needs }, number(app.summary.needs)),
          ),
        ),
      ),
    h(
      "div",
      { class: "tools" },
      signedIn && app.may("work") && h("a", { class: "button small", href: "#/add" }, "Add task"),
      signedIn && dot(app),
      signedIn && canNotify() &&
        h("button", { class: "icon-button", type: "button", "aria-pressed": String(wantsNotify()), title: "Desktop notifications", on: { click: () => toggleNotify(app) } }, wantsNotify() ? "Notify: on" : "Notify: off"),
      h("button", { class: "icon-button", type: "button", title: "Light or dark", "data-action": "theme", on: { click: () => theme(app) } }, "Theme"),
      signedIn && h("button", { class: "icon-button", type: "button", title: "Keyboard", "data-action": "help", on: { click: () => app.help() } }, "?"),
      signedIn && app.session.closed && h("button", { class: "icon-button", type: "button", on: { click: () => app.leave() } }, "Sign out"),
    ),
  );
}

function dot(app) {
  const state = app.stream?.connected;
  const words = state === false ? "cut" : state ? "live" : "connecting";
  return h("span", { class: `live ${words}`, title: `The stream is ${words}` }, h("span", { class: "unseen" }, "Stream: "), words);
}

function theme(app) {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("taskyard-theme", root.dataset.theme);
  } catch {
    // Storage is forbidden: the choice lasts as long as the page.
  }
  app.draw();
}
