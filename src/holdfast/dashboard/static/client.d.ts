/** How a page reaches Holdfast. Its origin belongs in HOLDFAST_ORIGINS, unless Holdfast serves it itself. */
export interface Reach {
  /** Where Holdfast is served, such as `http://127.0.0.1:8181`; without it, where this module came from. */
  base?: string;
  /** The key that `holdfast key` prints, or one of `holdfast key create`. Tokens need one with scope admin. */
  key?: string | null;
}

export interface ReconnectToken {
  session_id: string;
  reconnect_token: string;
  expires_in_minutes: number;
}

export interface Reconnected {
  success: boolean;
  session_id: string;
  message: string;
  /** The next token: the one that was presented is used up. */
  reconnect_token: string;
  expires_in_minutes: number;
  reconnect_count: number;
  [other: string]: unknown;
}

/** What is thrown where a request was refused. */
export interface Refused extends Error {
  status: number;
  /** What to do, if Holdfast said so. */
  nextStep: string | null;
}

export interface HoldfastEvent {
  /** Its number in the log. */
  seq: number;
  /** Such as `bridge.queued`. */
  kind: string;
  /** The id of what changed. */
  subject: string;
  /** Milliseconds since the epoch. */
  at: number;
}

/** "lost" is told while the daemon is away, "refused" once, if the key or cookie is not accepted. */
export type State = "connected" | "lost" | "refused";

export function getReconnectToken(sessionId: string, options?: Reach): Promise<ReconnectToken>;
export function reconnectSession(sessionId: string, token: string, options?: Reach): Promise<Reconnected>;

export interface Following {
  /** The number of the last event that was seen. */
  readonly seen: number | null;
  stop(): void;
}

export interface Followed {
  /** The number of the last event that is known; without it the stream begins now. */
  after?: number | null;
  onEvent: (event: HoldfastEvent) => void;
  /** Too much was missed: look at everything again. */
  onReset?: () => void;
  onState?: (state: State) => void;
}

/** Follow the event log, over any number of restarts of the daemon. */
export function followEvents(options: Reach & Followed): Following;

/** The same functions with their reach filled in. */
export function holdfast(reach: Reach): {
  getReconnectToken(sessionId: string): Promise<ReconnectToken>;
  reconnectSession(sessionId: string, token: string): Promise<Reconnected>;
  followEvents(options: Followed): Following;
};
