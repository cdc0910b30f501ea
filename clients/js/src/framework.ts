import type { State } from "./types.js";

/** The state before the client has loaded: neither signed in nor signed out. */
export const unknown: State = { status: "loading", user: null, session: null };

/** Whether a user is signed in, also during an outage. */
export const signedIn = ({ status }: State): boolean => status === "signed-in" || status === "offline";

/** Whether no user is signed in, also during an incomplete sign-in. While loading, both functions return false. */
export const signedOut = (state: State): boolean => state.status !== "loading" && !signedIn(state);

/** Returns the state to render: the server-rendered one until the client has loaded. */
export const shown = (client: { readonly state: State }, initial: State | undefined): State =>
  initial && client.state.status === "loading" ? initial : client.state;
