import { createClient } from "authmount";
import { AuthProvider } from "authmount/solid";
import { render } from "solid-js/web";
import { App } from "./app";

const client = createClient(location.origin);
void client.completeRedirect();
render(() => <AuthProvider client={client}><App /></AuthProvider>, document.getElementById("root")!);
