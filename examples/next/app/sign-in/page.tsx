import Link from "next/link";
import { SignIn } from "./form";

export default async function Page({ searchParams }: { searchParams: Promise<{ return_to?: string; problem?: string; step?: string }> }) {
  const { return_to = "/", problem, step } = await searchParams;
  return (
    <>
      <h1>Sign in</h1>
      {problem && <p role="alert">That link did not work. Ask for another one.</p>}
      <SignIn returnTo={return_to} factor={step === "factor"} />
      <p>
        No account yet? <Link href="/sign-up">Sign up</Link>
      </p>
    </>
  );
}
