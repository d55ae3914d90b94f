/** How a page reaches Holdfast. A page of the dashboard itself passes `csrf`, any other a key. */
export interface Reach {
  /** Where Holdfast is served, such as `http://127.0.0.1:8181`; empty for the same origin. */
  base?: string;
  /** The key that `holdfast key` prints, or one of `holdfast key create`. */
  key?: string | null;
  /** The token in `document.body.dataset.csrf` of a page of the dashboard. */
  csrf?: string | null;
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
  reconnect_token: string;
  [other: string]: unknown;
}

/** Why a request was refused. */
export interface Refused extends Error {
  status: number;
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

export type State = "connected" | "lost" | "refused";

export function getReconnectToken(sessionId: string, options?: Reach): Promise<ReconnectToken>;
export function reconnectSession(sessionId: string, token: string, options?: Reach): Promise<Reconnected>;

export function followEvents(options: {
  base?: string;
  key?: string | null;
  /** The number of the last event that is known; without it the stream begins now. */
  after?: number | null;
  onEvent: (event: HoldfastEvent) => void;
  /** Too much was missed: look at everything again. */
  onReset?: () => void;
  onState?: (state: State) => void;
}): { readonly seen: number | null; stop(): void };
