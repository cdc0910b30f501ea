import { createFileRoute } from "@tanstack/react-router";
import { createServerFn } from "@tanstack/react-start";

const account = createServerFn().handler(async ({ context }) => {
  const { sub } = await context.auth.requireUser("/account");
  return { sub };
});

export const Route = createFileRoute("/account")({ loader: () => account(), component: Account });

function Account() {
  const { sub } = Route.useLoaderData();
  return (
    <>
      <h1>Account</h1>
      <p>
        Your id: <code id="sub">{sub}</code>
      </p>
    </>
  );
}
