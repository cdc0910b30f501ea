// The same for everybody, so caches may keep it.
export default defineEventHandler((event) => {
  setResponseHeader(event, "cache-control", "public, max-age=60");
  return "plain";
});
