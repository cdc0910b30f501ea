"use server";
import { cookies } from "next/headers";
import { redirect } from "next/navigation";
import { localPath } from "authmount/next";
import { call, origin } from "../auth";

/** What a form shows after it was sent. */
export interface Form {
  error?: string;
  done?: string;
  /** A second factor is asked for. */
  factor?: boolean;
}

const text = (form: FormData, name: string) => String(form.get(name) ?? "");
const brief = { httpOnly: true, sameSite: "lax", path: "/", secure: origin.startsWith("https:"), maxAge: 300 } as const;

export async function signIn(_: Form, form: FormData): Promise<Form> {
  const { error } = await call("POST", "/login", { email: text(form, "email"), password: text(form, "password") });
  return next(error, localPath(text(form, "return_to")));
}

/** Goes on after a sign-in: to the page, or to the second factor. */
async function next(error: Awaited<ReturnType<typeof call>>["error"], to: string): Promise<Form> {
  if (error?.code === "mfa_required") {
    (await cookies()).set("mfa", String(error.mfaToken), brief); // a secret: in no URL, and out of scripts' reach
    return { factor: true };
  }
  if (error) return { error: error.message };
  redirect(to);
}

export async function secondFactor(_: Form, form: FormData): Promise<Form> {
  const jar = await cookies();
  const code = text(form, "code").replace(/\s/g, "");
  const { error } = await call("POST", "/2fa/verify", {
    mfa_token: jar.get("mfa")?.value,
    ...(/^\d{6}$/.test(code) ? { totp_code: code } : { recovery_code: code }),
  });
  if (error?.code === "invalid_totp_code") return { factor: true, error: error.message };
  jar.delete("mfa");
  if (error) return { error: error.message };
  redirect(localPath(text(form, "return_to")));
}

export async function signUp(_: Form, form: FormData): Promise<Form> {
  const { data, error } = await call<{ confirmation_required?: boolean }>("POST", "/signup", {
    email: text(form, "email"),
    password: text(form, "password"),
    full_name: text(form, "name") || undefined,
  });
  if (error) return { error: error.message };
  if (data.confirmation_required) return { done: "Look into your mail: there is a link to confirm your address." };
  redirect("/");
}

/** Mails a link that works in this browser: it is bound to a secret that only this browser has (PKCE). */
export async function sendLink(_: Form, form: FormData): Promise<Form> {
  const verifier = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  const challenge = Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))).toString("base64url");
  const { error } = await call("POST", "/magic-link/send", {
    email: text(form, "email"),
    redirect_to: `${origin}/callback`,
    code_challenge: challenge,
  });
  if (error) return { error: error.message };
  (await cookies()).set("verifier", verifier, { ...brief, maxAge: 900 });
  return { done: "Look into your mail, and open the link in this browser." };
}

export async function signOut(): Promise<void> {
  await call("POST", "/logout");
  redirect("/");
}

export async function endSession(form: FormData): Promise<void> {
  await call("DELETE", `/sessions/${encodeURIComponent(text(form, "id"))}`);
  redirect("/account");
}

/** What the second factor's form shows. */
export interface Setup extends Form {
  secret?: string;
  qr?: string;
  codes?: string[];
}

export async function setUpFactor(before: Setup, form: FormData): Promise<Setup> {
  if (!before.secret) {
    const { data, error } = await call<{ secret: string; qr_code: string }>("POST", "/2fa/setup-totp");
    return error ? { error: error.message } : { secret: data.secret, qr: data.qr_code };
  }
  const { data, error } = await call<{ recovery_codes: string[] }>("POST", "/2fa/verify-and-enable", { totp_code: text(form, "code") });
  return error ? { ...before, error: error.message } : { codes: data.recovery_codes };
}

export async function removeFactor(_: Form, form: FormData): Promise<Form> {
  const { error } = await call("POST", "/2fa/disable", { totp_code: text(form, "code") });
  if (error) return { error: error.message };
  redirect("/account");
}
