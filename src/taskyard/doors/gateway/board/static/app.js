// The board: signs in, follows the hash of the address to a page, and keeps that page fresh while it is seen.

import * as api from "./api.js";
import { dispatch, h, show } from "./dom.js";
import { setNow } from "./format.js";
import { header } from "./header.js";
import { listen } from "./keyboard.js";
import { Stream } from "./stream.js";
import { tickTimes } from "./times.js";
import { announce, setCount, watchSight } from "./tab.js";
import * as add from "./view-add.js";
import * as agents from "./view-agents.js";
import * as board from "./view-board.js";
import * as events from "./view-events.js";
import * as figures from "./view-figures.js";
import * as mission from "./view-mission.js";
import * as missions from "./view-missions.js";
import * as needs from "./view-needs.js";
import * as signIn from "./view-sign-in.js";
import * as task from "./view-task.js";

const VIEWS = { needs, board, agents, missions, figures, events, add, mission, task };
const LEAST = 1000; // milliseconds between two looks at the yard, however fast things happen
const SCOPES = ["read", "work", "manage", "teams"];
const element = (id) => document.getElementById(id);

const app = {
  session: null,
  stream: null,
  view: null,
  query: {},
  summary: {},
  data: null,
  /** Whether who sits here may do what needs this scope. */
  may(scope) {
    return SCOPES.indexOf(this.session?.scope) >= SCOPES.indexOf(scope);
  },
  go(hash) {
    location.hash = hash;
  },
  /** Change the filters in the address: empty ones are left out. */
  filter(changes, name = this.view.name) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries({ ...this.query, ...changes })) if (value) query.set(key, value);
    const text = query.toString();
    history.replaceState(null, "", `#/${name}${text ? `?${text}` : ""}`);
    follow();
  },
  /** Do something for the person, say how it went, and look anew. */
  async act(work, said) {
    try {
      const answer = await work();
      if (said) announce(typeof said === "function" ? said(answer) : said);
      await load(true);
      return answer;
    } catch (error) {
      tell(error);
      return undefined;
    }
  },
  refresh: () => load(true),
  tell,
};

function tell(error) {
  if (error.name === "AbortError") return;
  announce(error.message);
  show(
    element("dialogs"),
    h(
      "dialog",
      { key: error.message + Date.now(), class: "dialog", "aria-labelledby": "refused" },
      h("h2", { id: "refused" }, "That did not work"),
      h("p", {}, error.message),
      error.hint && h("p", { class: "quiet" }, error.hint),
      h("form", { method: "dialog", class: "buttons" }, h("button", { class: "button" }, "Close")),
    ),
  );
  element("dialogs").firstChild.showModal();
}

// Pages

let loading = null;
let lastLoad = 0;
let timer = 0;

/** Show the page that the address names. */
function follow() {
  const [place, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = place.split("/");
  const view = VIEWS[name] ?? needs;
  const changed = app.view !== view || app.rest !== rest.join("/");
  app.view = view;
  app.rest = rest.map(decodeURIComponent).join("/");
  app.query = Object.fromEntries(new URLSearchParams(search));
  if (changed) {
    app.data = null;
    show(element("main"), h("div", { key: `${name}/${app.rest}`, class: "page" }, h("p", { class: "quiet" }, "Looking …")));
    window.scrollTo(0, 0);
    element("main").focus({ preventScroll: true });
  }
  draw();
  load();
}

/** Read what the page shows. A look that is still under way is given up. */
async function load(anew = false) {
  clearTimeout(timer);
  if (!app.view || !app.session?.scope) return;
  loading?.abort();
  const mine = (loading = new AbortController());
  const view = app.view;
  lastLoad = performance.now();
  try {
    const data = await view.load(app, { signal: mine.signal, anew });
    if (mine.signal.aborted || view !== app.view) return;
    if (data?.now) setNow(data.now);
    app.data = data;
    app.error = null;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) return signOut();
    app.error = error;
  } finally {
    if (loading === mine) loading = null;
  }
  requestAnimationFrame(draw);
  later(view.every ?? 30_000);
}

function later(pause) {
  clearTimeout(timer);
  timer = setTimeout(() => (document.hidden ? undefined : load()), pause);
}

/** Something happened: look soon, unless a look is under way, too recent, or the page is hidden. */
function soon() {
  if (document.hidden || !app.view) return;
  const wait = LEAST - (performance.now() - lastLoad);
  if (loading !== null) later(LEAST);
  else if (wait <= 0) load();
  else later(wait);
}

function draw() {
  show(element("top"), header(app));
  banner();
  document.documentElement.dataset.scope = app.session?.scope ?? "none";
  if (!app.session?.scope) {
    show(element("main"), h("div", { key: "sign-in", class: "page narrow" }, signIn.render(app)));
    return;
  }
  if (app.error && app.data === null) {
    const nodes = [h("h1", {}, app.error.code === "not_found" ? "There is no such thing" : "This cannot be read now"), h("p", {}, app.error.message), app.error.hint && h("p", { class: "quiet" }, app.error.hint)];
    show(element("main"), h("div", { key: "error", class: "page narrow" }, nodes));
  } else if (app.data !== null) {
    show(element("main"), h("div", { key: `${app.view.name}/${app.rest}`, class: "page" }, app.view.render(app.data, app)));
  }
  tickTimes();
}

function banner() {
  const cut = app.stream?.connected === false;
  const fresh = app.version && app.summary.version && app.version !== app.summary.version;
  element("banner").hidden = !cut && !fresh;
  element("banner").className = cut ? "cut" : "";
  if (cut) show(element("banner"), "The connection to the gateway is cut. What you see may be old; the board tries again by itself.");
  else if (fresh) show(element("banner"), "The gateway has a new version. ", h("a", { href: "", on: { click: () => location.reload() } }, "Load it"));
}

// The stream

function connect() {
  const stream = (app.stream = new Stream());
  stream.addEventListener("hello", ({ detail }) => {
    app.version ??= detail.version;
    summed(detail);
    draw();
    soon(); // what happened while the stream was cut is not sent again
  });
  stream.addEventListener("summary", ({ detail }) => summed(detail));
  stream.addEventListener("tick", ({ detail }) => {
    app.view?.tick?.(detail, app);
    soon();
  });
  stream.addEventListener("cut", () => {
    draw();
    if (!document.hidden) check();
  });
}

/** After a cut: is the gateway away, or is the person no longer let in? */
async function check() {
  try {
    const session = await api.get("session");
    if (!session.scope) signOut();
  } catch {
    // It is away; the stream tries again.
  }
}

function summed(detail) {
  const before = app.summary.needs;
  app.summary = { ...app.summary, ...detail };
  setCount(app.summary.needs ?? 0, before, app);
  if (!document.hidden) show(element("top"), header(app));
}

async function signOut() {
  if (app.session) app.session.scope = null;
  app.stream?.close();
  app.stream = null;
  app.data = null;
  draw();
}

async function start() {
  try {
    app.session = await api.get("session");
  } catch (error) {
    show(element("main"), h("div", { class: "page narrow" }, h("h1", {}, "The gateway does not answer"), h("p", {}, error.message)));
    setTimeout(start, 3000);
    return;
  }
  if (app.session.scope && !app.stream) connect();
  follow();
}

app.start = start;
app.draw = draw;
app.leave = async () => {
  await api.remove("session");
  location.reload();
};
dispatch(document.body);
listen(app);
watchSight();
addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  app.stream?.retry();
  draw();
  load();
});
setInterval(() => document.hidden || tickTimes(), 1000);
start();
