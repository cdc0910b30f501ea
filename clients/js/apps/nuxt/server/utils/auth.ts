import { createNuxtAuth } from "authmount/nuxt";

export const auth = createNuxtAuth(process.env.APP_URL ?? "http://localhost:3000", {
  internalUrl: process.env.AUTH_INTERNAL_URL ?? "http://127.0.0.1:8080",
  protect: ["/account"],
});
