// The form of a task: to add one, and to edit one that no worker holds.

import { h } from "./dom.js";

const field = (name, title, control, about) => h("div", { key: name, class: "form-field" }, h("label", { for: `field-${name}` }, title), control, about && h("p", { class: "quiet", id: `about-${name}` }, about));
const input = (name, value, more = {}) => h("input", { id: `field-${name}`, name, value: value ?? "", autocomplete: "off", ...more });

export function form(task, button, submit, edit = false) {
  return h(
    "form",
    { class: "form", on: { submit } },
    !edit && field("kind", "Kind", input("kind", task.kind, { required: true, list: "kinds" }), "What sort of work it is; workers ask for kinds."),
    field("title", "Title", input("title", task.title)),
    field("data", "Data (JSON)", h("textarea", { id: "field-data", name: "data", rows: "6", class: "mono", spellcheck: "false" }, task.data === undefined ? "" : JSON.stringify(task.data, null, 2))),
    h("p", { class: "trouble", role: "alert" }),
    field("priority", "Priority", input("priority", task.priority ?? 5, { type: "number", min: "0", max: "9" }), "0 is the most urgent."),
    field("assignee", "Assignee", input("assignee", task.assignee), "Only this worker gets it."),
    !edit && field("mission", "Mission", input("mission", task.mission)),
    !edit && field("after", "Comes after", input("after", ""), "Ids or short names, separated by spaces."),
    field("delay", "Delay", input("delay", ""), "Such as 10m or 2h."),
    !edit && h("label", { key: "review", class: "check" }, h("input", { type: "checkbox", name: "review" }), " Somebody has to accept the result"),
    h("div", { class: "buttons" }, h("button", { class: "button main" }, button)),
  );
}

/** Return what the form says that differs from the task; null, and a word beside the field, if its data is no JSON. */
export function values(form, task) {
  const said = {};
  const read = (name) => form.elements[name]?.value.trim();
  form.querySelector(".trouble").textContent = "";
  for (const name of ["kind", "title", "assignee", "mission", "delay"]) {
    const text = read(name);
    if (text && text !== task[name]) said[name] = text;
    else if (text === "" && task[name]) said[name] = null;
  }
  const priority = Number(read("priority"));
  if (priority !== (task.priority ?? 5)) said.priority = priority;
  const after = read("after");
  if (after) said.after = after.split(/[\s,]+/);
  if (form.elements.review?.checked) said.review = true;
  const text = read("data");
  if (text && text !== JSON.stringify(task.data, null, 2)) {
    try {
      said.data = JSON.parse(text);
    } catch (error) {
      form.querySelector(".trouble").textContent = `The data is no JSON: ${error.message}`;
      form.elements.data.focus();
      return null;
    }
  }
  return said;
}
