// One stream of events for all tabs of a browser, which opens six connections to a server at most: the tab that holds the
// lock follows the log and tells the others. When it is closed, the next one goes on where it was.

import { followEvents } from "./client.js";

const NAME = "holdfast-events";

/** As followEvents, for a page of the dashboard. */
export function followTogether({ after, onEvent, onReset, onState }) {
  const own = { after, onEvent, onReset, onState };
  // Where it is served under another name than this machine's without https, browsers have no locks.
  if (!navigator.locks || !window.BroadcastChannel) return void followEvents(own);

  const channel = new BroadcastChannel(NAME);
  let seen = after;
  let state = null;
  let leads = false;

  const hear = {
    event(event) {
      if (event.seq <= seen) return;
      seen = event.seq;
      onEvent(event);
    },
    reset({ head }) {
      seen = Math.max(seen, head);
      onReset();
    },
    state({ state: told }) {
      if (told !== state) onState((state = told));
    },
    // A tab that came later asks what it missed between its page and now.
    who() {
      if (leads && state !== null) tell("here", { head: seen, state });
    },
    here({ head, state: told }) {
      if (leads) return;
      hear.state({ state: told });
      if (head > seen) hear.reset({ head });
    },
  };

  function tell(kind, content) {
    channel.postMessage({ kind, content });
  }

  function both(kind, content) {
    hear[kind](content);
    tell(kind, content);
  }

  channel.onmessage = ({ data }) => hear[data.kind]?.(data.content);
  tell("who", {});
  navigator.locks.request(NAME, () => {
    leads = true;
    const following = followEvents({
      after: seen,
      onEvent: (event) => both("event", event),
      onReset: () => both("reset", { head: following.seen }),
      onState: (told) => both("state", { state: told }),
    });
    return new Promise(() => {}); // for as long as the tab is there
  });
}
