// Keys: j and k go from item to item, enter opens one, / searches, ? helps, 1 to 6 change the page.

import { h, show } from "./dom.js";
import { PAGES } from "./header.js";

const KEYS = [
  ["j, k", "next and previous item"],
  ["Enter", "open the item"],
  ["/", "search"],
  ["1 – 6", PAGES.map(([, title]) => title).join(", ")],
  ["a", "add a task"],
  ["r", "look again"],
  ["t", "light or dark"],
  ["?", "this help"],
  ["Esc", "close, or leave a field"],
];

export function listen(app) {
  app.help = help;
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing) {
      typing.blur();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !app.session?.scope) return;
    if (press(event.key, app)) event.preventDefault();
  });
}

function press(key, app) {
  if (key === "j" || key === "k") return step(key === "j" ? 1 : -1);
  if (key === "/") return search(app);
  if (key === "?") return help();
  if (key === "r") return app.refresh() || true;
  if (key === "a" && app.may("work")) return go(app, "add");
  if (key === "t") return document.querySelector("[data-action=theme]")?.click() ?? true;
  const page = PAGES[Number(key) - 1];
  return page ? go(app, page[0]) : false;
}

function go(app, name) {
  app.go(`#/${name}`);
  return true;
}

function step(by) {
  const items = [...document.querySelectorAll("main [data-item]")].filter((item) => item.offsetParent !== null);
  const at = items.indexOf(document.activeElement);
  const next = items[at === -1 ? (by > 0 ? 0 : items.length - 1) : Math.max(0, Math.min(items.length - 1, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

function search(app) {
  const field = document.querySelector("main [data-search]");
  if (field) field.focus();
  else app.go("#/board?search=1");
  return true;
}

function help() {
  const rows = KEYS.map(([keys, what]) => h("div", { class: "pair" }, h("dt", {}, keys.split(", ").map((key, at) => [at > 0 && " ", h("kbd", {}, key)])), h("dd", {}, what)));
  const dialog = h(
    "dialog",
    { key: "help", class: "dialog", "aria-labelledby": "keys" },
    h("h2", { id: "keys" }, "Keyboard"),
    h("dl", { class: "pairs" }, rows),
    h("form", { method: "dialog", class: "buttons" }, h("button", { class: "button" }, "Close")),
  );
  show(document.getElementById("dialogs"), dialog);
  document.getElementById("dialogs").firstChild.showModal();
  return true;
}
