import { createClient } from "authmount";
import { authStore, userStore } from "authmount/svelte";

export const client = createClient(location.origin);
void client.completeRedirect();
export const auth = authStore(client);
export const user = userStore(client);
