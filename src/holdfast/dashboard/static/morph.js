// Puts new HTML in the place of old, and leaves alone what did not change: focus, scroll, open details, typed text.

/** Change `from` so that it is like `to`. Children with an id or data-key are known again wherever they are. */
export function morph(from, to) {
  const held = document.activeElement;
  change(from, to);
  if (held && held !== document.body && held !== document.activeElement) refocus(held, from);
}

/** Give the focus back to what had it, or to its region if that is gone, so that Tab goes on from there. */
export function refocus(held, region) {
  // Never another button: a second Enter must not act on something else.
  const shown = region.hidden ? document.getElementById("content") : region;
  const next = held.isConnected ? held : shown;
  if (next === shown && !shown.hasAttribute("tabindex")) shown.tabIndex = -1;
  next.focus({ preventScroll: true });
}

function change(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  for (const { name, value } of [...to.attributes]) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !keeps(from, name)) from.removeAttribute(name);
  }
  if (from.isEqualNode(to)) return;
  if (from.matches("textarea, select")) return;
  children(from, to);
}

function keeps(element, name) {
  return (name === "open" && element.nodeName === "DETAILS") || (name === "disabled" && element.nodeName === "BUTTON");
}

function children(from, to) {
  const known = new Map();
  for (const child of from.children) if (keyOf(child)) known.set(keyOf(child), child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    let old = key ? known.get(key) : place;
    while (!key && old && keyOf(old)) old = old.nextSibling;
    if (old && !alike(old, wanted)) old = null;
    if (!old) {
      if (wanted.nodeType === Node.ELEMENT_NODE && key) wanted.dataset.new = "";
      from.insertBefore(document.adoptNode(wanted), place);
      continue;
    }
    change(old, wanted);
    if (old === place) place = place.nextSibling;
    else from.insertBefore(old, place);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset?.key || "" : "";
}
