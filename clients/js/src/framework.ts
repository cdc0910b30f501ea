import type { Metadata, State } from "./types.js";

/** The state before the client has loaded: neither signed in nor signed out. */
export const unknown: State = { status: "loading", user: null, session: null };

/** Whether a user is signed in, also during an outage. */
export const signedIn = ({ status }: State<any>): boolean => status === "signed-in" || status === "offline";

/** Whether no user is signed in, also during an incomplete sign-in. While loading, both functions return false. */
export const signedOut = (state: State<any>): boolean => state.status !== "loading" && !signedIn(state);

/** Returns the state to render: the server-rendered one until the client has loaded. */
export const shown = <M extends Metadata>(client: { readonly state: State<M> }, initial: State<M> | undefined): State<M> =>
  initial && client.state.status === "loading" ? initial : client.state;
