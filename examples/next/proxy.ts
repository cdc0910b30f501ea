import { middleware } from "./auth";

// Renews sessions. What is protected asks auth() itself.
export default middleware;

export const config = { matcher: "/((?!_next/|favicon.ico).*)" };
