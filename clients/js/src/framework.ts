import type { State } from "./types.js";

/** What is known before anything is: neither signed in nor signed out. */
export const unknown: State = { status: "loading", user: null, session: null };

/** Whether somebody is signed in; an outage changes nothing about that. */
export const signedIn = ({ status }: State): boolean => status === "signed-in" || status === "offline";

/** Whether nobody is, which a sign-in that is under way does not change. While it is not known, neither holds. */
export const signedOut = (state: State): boolean => state.status !== "loading" && !signedIn(state);

/** What there is to show now: what the server rendered, until the client knows more. */
export const shown = (client: { readonly state: State }, initial: State | undefined): State =>
  initial && client.state.status === "loading" ? initial : client.state;
