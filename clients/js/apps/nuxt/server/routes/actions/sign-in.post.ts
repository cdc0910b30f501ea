import { localPath } from "authmount/nuxt";

export default defineEventHandler(async (event) => {
  const { email, password, return_to } = await readBody(event);
  const { error } = await auth(event).call("POST", "/login", { email, password });
  return sendRedirect(event, error ? `/sign-in?${new URLSearchParams({ problem: "1", return_to })}` : localPath(return_to), 303);
});
