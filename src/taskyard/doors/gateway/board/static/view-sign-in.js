// Signing in: a token becomes a cookie that no script can read.

import { post } from "./api.js";
import { h } from "./dom.js";

export const name = "sign-in";
let trouble = null;

export function render(app) {
  const submit = async (event) => {
    event.preventDefault();
    const field = event.target.elements.token;
    try {
      await post("session", { token: field.value });
      field.value = "";
      trouble = null;
      await app.start();
    } catch (error) {
      trouble = error;
      app.draw();
      field.focus();
    }
  };
  return [
    h("h1", {}, "Sign in"),
    h("p", {}, "This yard asks for a token. One with the scope ", h("code", {}, "read"), " sees everything; ", h("code", {}, "manage"), " may also act."),
    h(
      "form",
      { class: "stack", on: { submit } },
      h("label", { for: "token" }, "Token"),
      h("input", { id: "token", name: "token", type: "password", autocomplete: "current-password", required: true, class: "wide", "aria-describedby": "trouble" }),
      h("p", { id: "trouble", class: "trouble", role: "alert" }, trouble?.message ?? ""),
      h("div", { class: "buttons" }, h("button", { class: "button main" }, "Sign in")),
    ),
    h("p", { class: "quiet" }, "Beside the yard, ", h("code", {}, "taskyard token new --scope manage"), " makes one."),
  ];
}
