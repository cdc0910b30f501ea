import { createFileRoute } from "@tanstack/react-router";
import { localPath } from "authmount/tanstack-start";

export const Route = createFileRoute("/actions/sign-in")({
  server: {
    handlers: {
      POST: async ({ request, context }) => {
        const form = await request.formData();
        const { error } = await context.auth.call("POST", "/login", { email: form.get("email"), password: form.get("password") });
        const to = localPath(form.get("return_to"));
        return new Response(null, { status: 303, headers: { location: error ? `/sign-in?problem=1&return_to=${encodeURIComponent(to)}` : to } });
      },
    },
  },
});
