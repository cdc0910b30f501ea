/** A client as frameworks see it, whose state a test sets. */
export function fakeClient(state) {
  const listeners = new Set();
  return {
    state,
    listeners,
    subscribe(listener) {
      listeners.add(listener);
      queueMicrotask(() => listeners.has(listener) && listener(this.state));
      return () => listeners.delete(listener);
    },
    set(next) {
      this.state = next;
      for (const listener of listeners) queueMicrotask(() => listeners.has(listener) && listener(next));
    },
  };
}

export const ada = { id: "1", email: "ada@example.com" };
export const states = {
  loading: { status: "loading", user: null, session: null },
  signedOut: { status: "signed-out", user: null, session: null },
  mfa: { status: "mfa", user: null, session: null },
  signedIn: { status: "signed-in", user: ada, session: null },
  offline: { status: "offline", user: ada, session: null },
};
/** Which of the two components draws its children in a state. */
export const drawn = { loading: "", signedOut: "out", mfa: "out", signedIn: "in", offline: "in" };
export const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
