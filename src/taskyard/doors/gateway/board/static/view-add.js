// Adding a task.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { taskLink } from "./parts.js";
import { form, values } from "./task-form.js";

export const name = "add";
export const every = 3_600_000; // the form stays as it is

export const load = async (app, options) => ({ kinds: (await get("v1/overview", {}, options)).overview.kinds });

export function render(data, app) {
  if (!app.may("work")) return [h("h1", {}, "Add a task"), h("p", {}, "Your token may only look.")];
  const submit = async (event) => {
    event.preventDefault();
    const said = values(event.target, {});
    if (said === null) return;
    const made = await app.act(() => post("v1/tasks", said), (answer) => `${answer.task.short} is added`);
    if (made) app.go(taskLink(made.task.id));
  };
  return h("div", { class: "narrow" }, h("h1", {}, "Add a task"), form({}, "Add task", submit), h("datalist", { id: "kinds" }, data.kinds.map((kind) => h("option", { key: kind, value: kind }))));
}
