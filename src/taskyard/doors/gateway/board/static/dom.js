// Elements from plain descriptions. Texts become text nodes and never markup, so that nothing a user wrote is interpreted.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "circle", "line", "polyline", "text", "title"]);
const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "hidden", "open"]);

/** Make an element: attributes, `on` handlers by event name, `key` to know it again, and children. */
export function h(tag, attributes = {}, ...children) {
  const inSvg = SVG_TAGS.has(tag) && !(tag === "title" && attributes.html);
  const element = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") element.handlers = value;
    else if (name === "key") element.key = value;
    else if (name === "style") element.rules = value;
    else if (PROPERTIES.has(name)) {
      element[name] = value;
      element.given = { ...element.given, [name]: value };
      if (value === true) element.setAttribute(name, "");
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  if (element.rules) paint(element, element.rules);
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function paint(element, rules) {
  for (const [name, value] of Object.entries(rules)) element.style.setProperty(name, value);
}

/** Make `old` look like `fresh`, keeping elements that stay: no flicker, no lost focus, no lost scroll. */
export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.key !== fresh.key) {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return old;
  }
  attributes(old, fresh);
  old.handlers = fresh.handlers;
  if (!old.hasAttribute("data-own")) children(old, [...fresh.childNodes]);
  return old;
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "style" && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (fresh.rules) paint(old, fresh.rules);
  old.rules = fresh.rules;
  for (const [name, value] of Object.entries(fresh.given ?? {})) {
    // What a person has typed stays, unless the page gives something else than it gave before.
    if (old.given?.[name] !== value && old[name] !== value) old[name] = value;
  }
  old.given = fresh.given;
}

function children(old, fresh) {
  const known = new Map();
  for (const child of old.childNodes) if (child.key !== undefined) known.set(child.key, child);
  let at = old.firstChild;
  for (const child of fresh) {
    const same = child.key === undefined ? undefined : known.get(child.key);
    if (same !== undefined) {
      known.delete(child.key);
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      morph(same, child);
    } else if (at !== null && at.key === undefined && child.key === undefined) {
      const next = at.nextSibling;
      morph(at, child);
      at = next;
    } else old.insertBefore(child, at);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  for (const child of known.values()) if (child.parentNode === old) child.remove();
}

/** Show these children in an element. */
export function show(element, ...fresh) {
  const holder = document.createDocumentFragment();
  add(holder, fresh);
  children(element, [...holder.childNodes]);
}

/** Call the handlers that descriptions name; one listener for the whole page serves elements that come and go. */
export function dispatch(root) {
  for (const name of ["click", "submit", "input", "change", "keydown", "toggle"]) {
    root.addEventListener(
      name,
      (event) => {
        for (let element = event.target; element && element !== root.parentNode; element = element.parentNode) {
          const handler = element.handlers?.[name];
          if (handler) {
            handler(event, element);
            return;
          }
        }
      },
      name === "toggle",
    );
  }
}
