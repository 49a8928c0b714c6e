// A graph of tasks, painted at the places that the gateway has worked out; the view follows what runs.

import { h } from "./dom.js";
import { taskLink } from "./parts.js";

const MARGIN = 12;

export function picture(drawing, current = null) {
  const [wide, high] = drawing.box;
  const width = drawing.width + 2 * MARGIN;
  const height = drawing.height + 2 * MARGIN;
  const running = drawing.nodes.find((node) => node.state === "processing");
  const states = [...new Set(drawing.nodes.map((node) => node.state).filter(Boolean))];
  const svg = h(
    "svg",
    { viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, width, height, role: "group", "aria-label": `A graph of ${drawing.nodes.length} tasks` },
    drawing.edges.map((edge) => h("path", { key: `${edge.from} ${edge.to}`, d: curve(edge.points, drawing.rightward), class: `edge ${edge.on_failure}${edge.critical ? " critical" : ""}` })),
    drawing.nodes.map((node) => box(node, wide, high, current)),
  );
  const holder = h("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Graph", "data-follow": running?.id ?? "" }, svg);
  if (running) requestAnimationFrame(() => follow(running, drawing));
  const critical = drawing.nodes.some((node) => node.critical);
  return [
    holder,
    h("p", { class: "legend" }, states.map((state) => h("span", { key: state }, h("i", { class: `swatch node-${state}` }), state)), critical && h("span", {}, h("i", { class: "swatch critical" }), "critical path"), drawing.left_out > 0 && h("span", {}, `${drawing.left_out} tasks are left out`)),
  ];
}

let followed = null;

/** Scroll to the running task when another one has begun to run; never while somebody looks elsewhere in between. */
function follow(node, drawing) {
  const place = document.querySelector(".graph");
  if (!place || followed === node.id) return;
  followed = node.id;
  const [x, y] = node.at;
  place.scrollTo({ left: x - place.clientWidth / 2 + drawing.box[0] / 2, top: y - place.clientHeight / 2, behavior: "auto" });
}

function box(node, wide, high, current) {
  const [x, y] = node.at;
  const title = node.title ?? node.kind ?? node.id;
  const words = node.states ? Object.entries(node.states).map(([state, count]) => `${count} ${state}`).join(", ") : [node.short, node.state, node.worker].filter(Boolean).join(" · ");
  const content = h(
    "g",
    { class: `node node-${node.state ?? "group"}${node.critical ? " critical" : ""}${node.id === current ? " current" : ""}`, "data-node": node.id, "data-state": node.state ?? "" },
    h("title", {}, `${title}: ${words}`),
    h("rect", { x, y, width: wide, height: high, rx: 8 }),
    h("text", { x: x + 12, y: y + 22, class: "node-title" }, cut(title, 22)),
    h("text", { x: x + 12, y: y + 41, class: "node-words" }, cut(words, 25)),
  );
  if (node.states) return content;
  const link = document.createElementNS("http://www.w3.org/2000/svg", "a");
  link.setAttribute("href", taskLink(node.id));
  link.setAttribute("aria-label", `${title}, ${words}`);
  link.key = node.id;
  link.append(content);
  return link;
}

const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function curve(points, rightward) {
  let path = `M${points[0].join(" ")}`;
  for (let at = 1; at < points.length; at += 1) {
    const [x0, y0] = points[at - 1];
    const [x1, y1] = points[at];
    if (at % 2 === 0) path += `L${x1} ${y1}`;
    else if (rightward) path += `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;
    else path += `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
  }
  return path;
}
