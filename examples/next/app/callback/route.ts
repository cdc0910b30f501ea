import { cookies } from "next/headers";
import { redirect } from "next/navigation";
import type { NextRequest } from "next/server";
import { call } from "../../auth";

/** Where mailed links and providers send the browser back to: trades the code for a session. */
export async function GET(request: NextRequest) {
  const jar = await cookies();
  const code = request.nextUrl.searchParams.get("code");
  const code_verifier = jar.get("verifier")?.value;
  jar.delete("verifier");
  if (!code || !code_verifier) redirect("/sign-in?problem=link"); // a sign-in that this browser did not begin
  const { error } = await call("POST", "/exchange", { code, code_verifier }, request);
  if (error?.code === "mfa_required") {
    jar.set("mfa", String(error.mfaToken), { httpOnly: true, sameSite: "lax", path: "/", secure: request.nextUrl.protocol === "https:", maxAge: 300 });
    redirect("/sign-in?step=factor");
  }
  redirect(error ? "/sign-in?problem=link" : "/account");
}
