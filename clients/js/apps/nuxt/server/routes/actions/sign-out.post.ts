export default defineEventHandler(async (event) => {
  await auth(event).call("POST", "/logout");
  return sendRedirect(event, "/", 303);
});
