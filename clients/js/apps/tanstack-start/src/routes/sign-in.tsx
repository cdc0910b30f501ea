import { createFileRoute } from "@tanstack/react-router";

export const Route = createFileRoute("/sign-in")({
  validateSearch: ({ problem, return_to }: { problem?: unknown; return_to?: string }): { problem?: unknown; return_to?: string } => ({ problem, return_to }),
  component: SignIn,
});

function SignIn() {
  const { problem, return_to } = Route.useSearch();
  return (
    <>
      <h1>Sign in</h1>
      <form id="sign-in" method="post" action="/actions/sign-in">
        <input name="return_to" type="hidden" defaultValue={return_to} />
        <input name="email" type="email" autoComplete="username" required />
        <input name="password" type="password" autoComplete="current-password" required />
        <button>Sign in</button>
        <p role="alert">{problem ? "That did not work." : ""}</p>
      </form>
    </>
  );
}
