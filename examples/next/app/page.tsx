import { auth, isAway } from "../auth";

export default async function Home() {
  const { data: claims, error } = await auth();
  if (claims) return <h1>Hello, {claims.email ?? claims.phone}</h1>;
  return <h1>{isAway(error) ? "Back in a moment" : "Nobody is signed in"}</h1>;
}
