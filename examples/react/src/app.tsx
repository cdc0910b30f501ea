import { SignedIn, SignedOut, useAuth } from "authmount/react";
import { Account } from "./account";
import { SignIn } from "./sign-in";

export function App() {
  const { status, user, client } = useAuth();
  return (
    <>
      <header>
        <strong>Notes</strong>
        <SignedIn>
          <span>
            {user?.email} <button onClick={() => client.signOut()}>Sign out</button>
          </span>
        </SignedIn>
      </header>
      <main>
        {status === "offline" && <p role="status">The server does not answer. You stay signed in.</p>}
        <SignedIn>
          <Account />
        </SignedIn>
        <SignedOut>
          <SignIn />
        </SignedOut>
      </main>
    </>
  );
}
