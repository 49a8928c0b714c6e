// What is seen of the board when it is out of sight: the count in the tab's title and icon, and notifications if wanted.

import { path } from "./api.js";

const SEEN = `taskyard seen ${path("")}`;
let shown = null;
let turnAway = null;

/** Hold a lock while this tab is in sight: the tab that notifies asks whether any does. */
export function watchSight() {
  const look = () => {
    turnAway?.();
    turnAway = null;
    if (!document.hidden) navigator.locks?.request(SEEN, { mode: "shared" }, () => new Promise((done) => (turnAway = done)));
  };
  document.addEventListener("visibilitychange", look);
  look();
}

async function isSeen() {
  if (!navigator.locks) return !document.hidden;
  return (await navigator.locks.query()).held.some((lock) => lock.name === SEEN);
}

/** Say something to those who hear the page. */
export function announce(text) {
  document.getElementById("said").textContent = text;
}

export function setCount(count, before, app) {
  const name = app.session?.project ?? "Taskyard";
  document.title = `${count ? `(${count}) ` : ""}${name} · Taskyard`;
  if (count !== shown) drawIcon(count);
  shown = count;
  if (before !== undefined && count > before) {
    announce(`${count} ${count === 1 ? "thing needs" : "things need"} you`);
    notify(count, app);
  }
}

function drawIcon(count) {
  const icon = document.getElementById("icon");
  if (!count) {
    icon.href = "static/icon.svg";
    return;
  }
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#3a5bd9";
  pen.beginPath();
  pen.roundRect(0, 0, 64, 64, 16);
  pen.fill();
  pen.fillStyle = "#fff";
  pen.font = "bold 40px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(count > 99 ? "99" : String(count), 32, 34);
  icon.href = canvas.toDataURL("image/png");
}

export const canNotify = () => "Notification" in window;

export function wantsNotify() {
  try {
    return localStorage.getItem("taskyard-notify") === "on" && Notification.permission === "granted";
  } catch {
    return false;
  }
}

export async function toggleNotify(app) {
  const on = !wantsNotify() && (await Notification.requestPermission()) === "granted";
  try {
    localStorage.setItem("taskyard-notify", on ? "on" : "off");
  } catch {
    // Storage is forbidden: there is nowhere to remember the wish.
  }
  app.draw();
}

/** Notify once for all tabs, and only if none of them is seen. */
async function notify(count, app) {
  if (!app.stream?.leads || !wantsNotify() || (await isSeen())) return;
  const one = new Notification(app.session?.project ?? "Taskyard", { body: `${count} ${count === 1 ? "thing needs" : "things need"} you`, tag: "taskyard", icon: "static/icon.svg" });
  one.onclick = () => {
    window.focus();
    app.go("#/needs");
  };
}
