export default defineEventHandler(async (event) => {
  const { email, password } = await readBody(event);
  const { error } = await auth(event).call("POST", "/signup", { email, password });
  return sendRedirect(event, error ? "/sign-up?problem=1" : "/account", 303);
});
