import { createNextAuth, type Failure } from "authmount/next";

/** Where browsers find this application. */
export const origin = process.env.APP_URL ?? "http://127.0.0.1:3000";

export const { auth, call, getUser, middleware } = createNextAuth(origin, {
  internalUrl: process.env.AUTH_INTERNAL_URL ?? "http://127.0.0.1:8080",
  protect: ["/account"],
});

/** Whether an error says that the server is away, and nothing about who is there. */
export const isAway = (error: Failure | null) => error?.code === "token_stale" || error?.code === "network_error";
