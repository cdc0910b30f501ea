import { createFileRoute } from "@tanstack/react-router";

// The same for everybody, so caches may keep it.
export const Route = createFileRoute("/plain")({
  server: { handlers: { GET: () => new Response("plain", { headers: { "cache-control": "public, max-age=60" } }) } },
});
