import { createFileRoute } from "@tanstack/react-router";

export const Route = createFileRoute("/actions/sign-out")({
  server: {
    handlers: {
      POST: async ({ context }) => {
        await context.auth.call("POST", "/logout");
        return new Response(null, { status: 303, headers: { location: "/" } });
      },
    },
  },
});
