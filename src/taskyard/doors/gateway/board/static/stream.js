// One stream for each browser. The tab that holds a lock has it, and passes on what comes to the other tabs;
// when that tab is closed, the lock goes to the next one.

import { path } from "./api.js";

const SILENT = 40_000; // milliseconds without a sign of life (the gateway sends one every 15 s)
const AGAIN = [500, 1000, 2000, 4000, 8000]; // milliseconds before a stream that was cut is opened again

export class Stream extends EventTarget {
  #channel = new BroadcastChannel(`taskyard ${path("")}`);
  #tries = 0;
  #source = null;
  #watch = 0;
  connected = null; // null until it is known
  leads = false;

  constructor() {
    super();
    this.#channel.onmessage = ({ data }) => {
      if (data.name === "who") this.#tell();
      else this.#take(data.name, data.value);
    };
    this.#channel.postMessage({ name: "who" });
    if (navigator.locks) navigator.locks.request(`taskyard stream ${path("")}`, () => this.#lead());
    else this.#lead();
  }

  /** Hold the stream for all tabs, until this tab is closed. */
  #lead() {
    this.leads = true;
    this.#open();
    addEventListener("online", () => this.retry());
    return new Promise(() => {});
  }

  /** Open a stream that was cut now, and not only when its time has come. */
  retry() {
    if (this.leads && !this.connected) this.#open();
    else if (!this.leads) this.#channel.postMessage({ name: "who" });
  }

  #open() {
    clearTimeout(this.#watch);
    this.#source?.close();
    const source = (this.#source = new EventSource(path("stream")));
    for (const name of ["hello", "tick", "summary", "beat"]) {
      source.addEventListener(name, ({ data }) => {
        this.#tries = 0;
        this.#alive();
        this.#pass(name, JSON.parse(data));
      });
    }
    source.onopen = () => this.#alive();
    source.onerror = () => this.#cut();
    this.#alive();
  }

  #alive() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#cut(), SILENT);
  }

  #cut() {
    this.#source?.close();
    clearTimeout(this.#watch);
    this.#pass("cut", { tries: this.#tries });
    const pause = AGAIN[Math.min(this.#tries, AGAIN.length - 1)];
    this.#tries += 1;
    this.#watch = setTimeout(() => this.#open(), pause * (0.75 + Math.random() / 2));
  }

  #pass(name, value) {
    this.#channel.postMessage({ name, value });
    this.#take(name, value);
  }

  #tell() {
    if (this.leads && this.connected === false) this.#channel.postMessage({ name: "cut", value: {} });
    else if (this.leads && this.last) this.#channel.postMessage({ name: "hello", value: this.last });
  }

  #take(name, value) {
    if (name === "cut") this.connected = false;
    else {
      this.connected = true;
      if (name !== "tick") this.last = { ...this.last, ...value };
    }
    this.dispatchEvent(new CustomEvent(name, { detail: value }));
  }

  close() {
    this.#source?.close();
    clearTimeout(this.#watch);
  }
}
