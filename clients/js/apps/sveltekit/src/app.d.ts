import type { RequestAuth } from "authmount/sveltekit";

declare global {
  namespace App {
    interface Locals {
      auth: RequestAuth;
    }
  }
}
