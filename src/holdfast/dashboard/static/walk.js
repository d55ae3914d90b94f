// Walks a page without loading it again: links marked data-go, their keys (data-keys), and results as one types.
// Without the script the same links and forms load pages.

const TYPED_MS = 120;

/**
 * `refresh(regions)` fetches live regions of the present address at once; all of them without a list.
 * Returns what is to be done after regions have changed.
 */
export function walk(refresh) {
  let placed = null;
  const current = () => document.querySelector("[data-walk] ol [aria-current]");

  /** Keep the selected row in sight; where somebody scrolled meanwhile, nothing moves. */
  function place() {
    const here = current();
    const graph = here?.closest(".graph");
    if (!graph || placed === here.href) return;
    placed = here.href;
    const offset = here.getBoundingClientRect().top - graph.getBoundingClientRect().top;
    if (offset < 32 || offset > graph.clientHeight - 64) graph.scrollTop += offset - graph.clientHeight / 2;
  }

  async function go(address) {
    if (new URL(address, location).href === location.href) return; // under way: a key that is held must not begin it anew
    const inTree = document.activeElement?.closest("[data-walk] ol");
    history.pushState(null, "", address);
    await refresh();
    if (inTree) current()?.focus({ preventScroll: true });
    document.getElementById("thought")?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-go]");
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = event.target;
    if (at.closest("input, textarea, select, [contenteditable]")) return;
    // Where something scrolls or opens by itself, keys of more than one letter are its own.
    if (event.key.length > 1 && at !== document.body && at.id !== "content" && !at.closest("[data-walk] ol, .walk")) return;
    for (const link of document.querySelectorAll("a[data-keys]")) {
      if (!link.dataset.keys.split(" ").includes(event.key)) continue;
      event.preventDefault();
      return go(link.getAttribute("href"));
    }
    if (event.key.startsWith("Arrow") && at.closest("[data-walk] ol")) event.preventDefault();
  });

  window.addEventListener("popstate", () => refresh());

  let typing = null;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-typed]");
    if (!form) return;
    clearTimeout(typing);
    typing = setTimeout(() => {
      const query = new URLSearchParams(new FormData(form));
      history.replaceState(null, "", `${form.getAttribute("action")}?${query}`);
      refresh(form.dataset.typed.split(" "));
    }, TYPED_MS);
  });

  place();
  return place;
}
