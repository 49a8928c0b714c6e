// Requests to the gateway. Every one carries a header that no other site can send.

const BASE = new URL(".", location.href).pathname.replace(/[^/]*$/, "");

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the gateway answered ${status}`);
    this.status = status;
    this.code = error?.code;
    this.hint = error?.hint;
  }
}

export const path = (name) => BASE + name;

async function ask(method, name, { query, body, signal, anew } = {}) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") search.append(key, one);
  }
  const text = search.toString();
  const headers = { "Taskyard-Board": anew ? "anew" : "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path(name) + (text ? `?${text}` : ""), {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    credentials: "same-origin",
    cache: "no-store",
  });
  let content;
  try {
    content = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(answer.status);
  }
  if (!answer.ok) throw new Refused(answer.status, content.error);
  return content.data;
}

export const get = (name, query, options) => ask("GET", name, { query, ...options });
export const post = (name, body = {}) => ask("POST", name, { body });
export const patch = (name, body) => ask("PATCH", name, { body });
export const remove = (name) => ask("DELETE", name);
export const task = (id, verb = "") => `v1/tasks/${encodeURIComponent(id)}${verb ? `/${verb}` : ""}`;
