import { redirect } from "next/navigation";
import { auth, call, getUser, isAway } from "../../auth";
import { endSession } from "../actions";
import { Factor } from "./factor";

interface Sessions {
  sessions: { id: string; device: string; ip: string | null; last_active_at: string; current: boolean }[];
}

const Away = () => <p role="alert">The sign-in service does not answer. Try again in a moment.</p>;

export default async function Account() {
  const { data: claims, error } = await auth(); // not the middleware: this is the check
  if (isAway(error)) return <Away />; // which is no reason to sign anybody out
  if (!claims) redirect("/sign-in?return_to=/account");
  const { data: user, error: gone } = await getUser(); // and this knows of sessions that were ended since
  if (gone?.status === 401 || gone?.status === 403) redirect("/sign-in?return_to=/account");
  if (!user) return <Away />;
  const { data } = await call<Sessions>("GET", "/sessions");
  return (
    <>
      <h1>{user.full_name ?? "Account"}</h1>
      <p>
        {user.email} ({user.email_verified ? "confirmed" : "not confirmed yet"})
      </p>
      <h2>Sessions</h2>
      <ul>
        {data?.sessions.map((s) => (
          <li key={s.id}>
            {s.device}, {s.ip}, <time dateTime={s.last_active_at}>{s.last_active_at.slice(0, 16).replace("T", " ")} UTC</time>{" "}
            {s.current ? (
              "(this one)"
            ) : (
              <form action={endSession}>
                <input type="hidden" name="id" value={s.id} />
                <button>End</button>
              </form>
            )}
          </li>
        ))}
      </ul>
      <h2>Second factor</h2>
      <Factor on={user.mfa_enabled} />
    </>
  );
}
