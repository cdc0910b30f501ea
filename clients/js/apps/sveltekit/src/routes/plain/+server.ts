// The same for everybody, so caches may keep it.
export const GET = () => new Response("plain", { headers: { "cache-control": "public, max-age=60" } });
