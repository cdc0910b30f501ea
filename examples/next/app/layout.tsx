import Link from "next/link";
import type { ReactNode } from "react";
import { signOut } from "./actions";
import { auth, isAway } from "../auth";
import "./style.css";

export const metadata = { title: "Notes" };

export default async function Layout({ children }: { children: ReactNode }) {
  const { data: claims, error } = await auth();
  return (
    <html lang="en">
      <body>
        <header>
          <Link href="/">Notes</Link>
          {claims ? (
            <form action={signOut}>
              <Link href="/account" prefetch={false}>{claims.email ?? claims.phone}</Link> <button>Sign out</button>
            </form>
          ) : (
            !isAway(error) && <Link href="/sign-in">Sign in</Link>
          )}
        </header>
        <main>{children}</main>
      </body>
    </html>
  );
}
