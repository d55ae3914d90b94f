// Makes the dashboard live: follows the event log, fetches the regions that changed and puts them in place.
// Every page can be read and used without it.

import { morph, refocus } from "./morph.js";
import { followTogether } from "./shared_events.js";
import { walk } from "./walk.js";

const TOGETHER_MS = 120; // changes that come close together are fetched once
const APART_MS = 1_000;
const FAILED_MS = 10_000;
const TICK_MS = 20_000;
const BACK_MS = 5_000;

const link = document.getElementById("link");
const said = document.getElementById("said");
const stale = new Set();
let timer = null;
let fetching = null; // the fetch that is under way: what it wants, and how it is ended
let fetchedAt = Date.now();
let waiting = Number(document.getElementById("head")?.dataset.waiting ?? 0);

document.documentElement.dataset.script = "";

// Live regions

function changed(kind, subject = null) {
  for (const region of document.querySelectorAll("[data-live]")) {
    const kinds = region.dataset.live.split(" ");
    if (kind !== null && region.dataset.of && region.dataset.of !== subject) continue;
    if (kind === null || kinds.some((one) => kind.startsWith(one))) stale.add(region.id);
  }
  if (stale.size > 0) schedule();
}

function schedule(wait = TOGETHER_MS) {
  if (timer === null && !fetching) {
    timer = setTimeout(refresh, Math.max(wait, fetchedAt + APART_MS - Date.now()));
  }
}

async function refresh() {
  const wanted = [...stale];
  stale.clear();
  timer = null;
  const mine = Object.assign(new AbortController(), { wanted });
  fetching = mine;
  let wait = TOGETHER_MS;
  try {
    const answer = await fetch(location.pathname + location.search, {
      headers: { "Holdfast-Parts": wanted.join(" ") },
      cache: "no-store",
      signal: mine.signal,
    });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine.signal.aborted) throw new Error("another address is wanted");
    for (const region of [...page.body.children]) {
      const old = region.id && document.getElementById(region.id);
      if (old) morph(old, region);
    }
    told();
    tick();
    place();
  } catch {
    if (mine.signal.aborted) return;
    for (const id of wanted) stale.add(id);
    wait = FAILED_MS; // or as soon as the daemon is back
  } finally {
    if (fetching === mine) fetching = null;
    fetchedAt = Date.now();
  }
  if (stale.size > 0) schedule(wait);
}

// The address of the page was changed: what is under way for the old one is of no use.
function refreshNow(regions) {
  for (const region of document.querySelectorAll("[data-live]")) {
    if (!regions || regions.includes(region.id)) stale.add(region.id);
  }
  for (const id of fetching?.wanted ?? []) stale.add(id);
  fetching?.abort();
  clearTimeout(timer);
  return refresh();
}

function told() {
  const now = Number(document.getElementById("head").dataset.waiting);
  if (now === waiting) return;
  document.title = (now ? `(${now}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  document.querySelector("link[rel=icon]").href = `/icon/${Math.min(now, 10)}.svg`;
  if (now > waiting && document.hidden && wantsNotice()) {
    const notice = new Notification("Holdfast", { body: now === 1 ? "1 thing waits for you." : `${now} wait for you.`, tag: "holdfast" });
    notice.onclick = () => window.focus();
  }
  waiting = now;
}

// The connection

let wasLost = false;
let backTimer = null;

function connection(state) {
  clearTimeout(backTimer);
  if (state === "lost") {
    wasLost = true;
    show(link, "Connection lost. Reconnecting…");
  } else if (state === "refused") {
    location.reload();
  } else if (wasLost) {
    wasLost = false;
    show(link, "Reconnected. The page is up to date.");
    backTimer = setTimeout(() => (link.hidden = true), BACK_MS);
    clearTimeout(timer);
    timer = null;
    changed(null);
  }
}

function show(place, text) {
  place.textContent = text;
  place.hidden = false;
}

// Times

const UNITS = [["day", 86_400_000], ["h", 3_600_000], ["min", 60_000]];

function age(ms) {
  for (const [name, length] of UNITS) {
    const count = Math.floor(ms / length);
    if (count >= 1) return `${count} ${name}${name === "day" && count > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

function tick() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const text = age(Date.now() - at.getTime());
    if (time.textContent !== text && !time.dataset.exact) time.textContent = text;
    time.title = at.toLocaleString();
  }
}

// Actions

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-quiet]")) return;
  event.preventDefault();
  const button = event.submitter;
  const region = form.closest("[data-live]") ?? document.getElementById("content");
  if (button) button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(form.action, { method: "POST", body, headers: { "Holdfast-Quiet": "1" } });
    if (answer.status === 401) return location.reload();
    const { said: text, problem, to } = await answer.json();
    if (to) return location.assign(to);
    show(said, text ?? problem);
    if (answer.ok) form.reset();
    changed(null);
  } catch {
    show(said, "The daemon did not answer. Check whether it took effect before you try again.");
  } finally {
    if (button) {
      button.disabled = false;
      if (document.activeElement === document.body) refocus(button, region); // a disabled button loses it
    }
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-notify]");
  if (!button) return;
  if ("notify" in button.dataset) {
    const allowed = (await Notification.requestPermission()) === "granted";
    localStorage.setItem("holdfast-notices", allowed && !wantsNotice() ? "on" : "off");
    return labelNotices();
  }
  await navigator.clipboard.writeText(button.dataset.copy);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1_500);
});

function wantsNotice() {
  return "Notification" in window && Notification.permission === "granted" && localStorage.getItem("holdfast-notices") === "on";
}

function labelNotices() {
  for (const button of document.querySelectorAll("[data-notify]")) {
    button.hidden = !("Notification" in window);
    button.textContent = wantsNotice() ? "Turn off notifications" : "Turn on notifications";
    button.setAttribute("aria-pressed", String(wantsNotice()));
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});

// What changes without an event, such as whether a process still runs, is looked at from time to time.
function look() {
  if (document.hidden) return;
  for (const region of document.querySelectorAll("[data-live][data-every]")) {
    if (Date.now() - fetchedAt >= region.dataset.every * 1_000) stale.add(region.id);
  }
  if (stale.size > 0) schedule();
}

tick();
labelNotices();
const place = walk(refreshNow);
setInterval(look, 2_000);
document.addEventListener("visibilitychange", look);
setInterval(tick, TICK_MS);
followTogether({
  after: Number(document.body.dataset.seen),
  onEvent: (event) => changed(event.kind, event.subject),
  onReset: () => changed(null),
  onState: connection,
});
