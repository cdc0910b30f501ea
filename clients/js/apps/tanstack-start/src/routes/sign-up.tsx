import { createFileRoute } from "@tanstack/react-router";

export const Route = createFileRoute("/sign-up")({
  validateSearch: ({ problem }: { problem?: unknown }): { problem?: unknown } => ({ problem }),
  component: SignUp,
});

function SignUp() {
  const { problem } = Route.useSearch();
  return (
    <>
      <h1>Sign up</h1>
      <form id="sign-up" method="post" action="/actions/sign-up">
        <input name="email" type="email" autoComplete="username" required />
        <input name="password" type="password" autoComplete="new-password" required />
        <button>Sign up</button>
        <p role="alert">{problem ? "That did not work." : ""}</p>
      </form>
    </>
  );
}
