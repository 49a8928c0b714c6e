// Times that go on by themselves: ages count up, leases drain.

import { h } from "./dom.js";
import { age, moment, now } from "./format.js";

/** An age that counts up; the exact moment is in its tooltip. */
export function ago(text, before = "", after = "") {
  if (!text) return null;
  return h("time", { datetime: text, title: moment(text), "data-before": before, "data-after": after }, before + age(text) + after);
}

/** A bar that drains from the last heartbeat to the end of the lease. */
export function lease(card) {
  if (!card.lease_until || !card.lease) return null;
  const share = left(card.lease_until, card.lease);
  return h(
    "div",
    { class: "lease", title: `The lease ends ${moment(card.lease_until)}`, "data-until": card.lease_until, "data-lease": card.lease },
    h("div", { class: share === 0 ? "drain over" : "drain", style: { width: `${share * 100}%` } }),
  );
}

const left = (until, whole) => Math.max(0, Math.min(1, (Date.parse(until) - now()) / 1000 / whole));

/** Bring all of them to the present. */
export function tickTimes() {
  for (const time of document.querySelectorAll("time[data-before]")) {
    const text = time.dataset.before + age(time.dateTime) + time.dataset.after;
    if (time.textContent !== text) time.textContent = text;
  }
  for (const bar of document.querySelectorAll("[data-until]")) {
    const share = left(bar.dataset.until, Number(bar.dataset.lease));
    bar.firstChild.style.setProperty("width", `${share * 100}%`);
    bar.firstChild.className = share === 0 ? "drain over" : "drain";
  }
}
