import { createClient } from "authmount";
import { createAuth } from "authmount/vue";
import { createApp } from "vue";
import App from "./App.vue";

const client = createClient(location.origin);
void client.completeRedirect();
createApp(App).use(createAuth(client)).mount("#root");
