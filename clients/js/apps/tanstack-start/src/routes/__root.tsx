import { createRootRoute, HeadContent, Link, Outlet, Scripts } from "@tanstack/react-router";
import { createServerFn } from "@tanstack/react-start";

const state = createServerFn().handler(async ({ context }) => {
  const { user, status } = await context.auth.initialState();
  return { status, email: user?.email ?? null };
});

export const Route = createRootRoute({
  head: () => ({ meta: [{ charSet: "utf-8" }, { title: "Authmount and TanStack Start" }] }),
  loader: () => state(),
  component: Root,
});

function Root() {
  const { status, email } = Route.useLoaderData();
  return (
    <html lang="en">
      <head>
        <HeadContent />
      </head>
      <body>
        <header>
          {status === "loading" && "Back in a moment"}
          {status === "signed-out" && (
            <>
              <Link to="/sign-in">Sign in</Link> <Link to="/sign-up">Sign up</Link>
            </>
          )}
          {email && (
            <>
              {email}
              <form method="post" action="/actions/sign-out">
                <button>Sign out</button>
              </form>
            </>
          )}
          <Link id="to-account" to="/account" preload={false}>
            Account
          </Link>
        </header>
        <Outlet />
        <Scripts />
      </body>
    </html>
  );
}
