// Questions that are asked before something happens.

import { h, show } from "./dom.js";

const place = () => document.getElementById("dialogs");

/** Ask for a go-ahead, with a text if `field` names one; returns the text (or true), or null if the person does not want to. */
export function ask(title, about, button, field = null, danger = false) {
  return new Promise((resolve) => {
    let answer = null;
    const input = field && h("textarea", { name: "text", rows: "3", id: "asked", class: "wide" });
    const dialog = h(
      "dialog",
      { key: Symbol("ask"), class: "dialog", "aria-labelledby": "question" },
      h(
        "form",
        {
          method: "dialog",
          on: {
            submit: (event) => {
              if (event.submitter?.value === "yes") answer = input ? input.value.trim() : true;
            },
          },
        },
        h("h2", { id: "question" }, title),
        about && h("p", {}, about),
        field && h("label", { for: "asked" }, field),
        input,
        h("div", { class: "buttons" }, h("button", { class: `button ${danger ? "danger" : "main"}`, value: "yes" }, button), h("button", { class: "button", value: "no", formnovalidate: true }, "Not now")),
      ),
    );
    dialog.addEventListener("close", () => resolve(answer));
    place().replaceChildren(dialog);
    dialog.showModal();
  });
}

/** Show a dialog whose content changes; returns `update(nodes)` and `close()`. */
export function panel(title) {
  const body = h("div", {});
  const dialog = h("dialog", { key: Symbol("panel"), class: "dialog", "aria-labelledby": "panel" }, h("h2", { id: "panel" }, title), body);
  place().replaceChildren(dialog);
  dialog.showModal();
  return { update: (...nodes) => show(body, ...nodes), close: () => dialog.close() };
}
