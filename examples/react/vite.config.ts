import { defineConfig } from "vite";

const proxy = { "/auth/v1": process.env.AUTH_INTERNAL_URL ?? "http://127.0.0.1:8080" };

export default defineConfig({
  // The auth server is on the page's own origin: no CORS, and redirects come back here.
  server: { host: "localhost", port: 3000, proxy },
  preview: { host: "localhost", port: 3000, proxy },
});
