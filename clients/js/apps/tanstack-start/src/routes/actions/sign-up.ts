import { createFileRoute } from "@tanstack/react-router";

export const Route = createFileRoute("/actions/sign-up")({
  server: {
    handlers: {
      POST: async ({ request, context }) => {
        const form = await request.formData();
        const { error } = await context.auth.call("POST", "/signup", { email: form.get("email"), password: form.get("password") });
        return new Response(null, { status: 303, headers: { location: error ? "/sign-up?problem=1" : "/account" } });
      },
    },
  },
});
