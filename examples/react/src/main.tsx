import { createClient } from "authmount";
import { AuthProvider } from "authmount/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";

// Once, outside of components; the server is on this origin.
const client = createClient(location.origin);
void client.completeRedirect(); // of a mailed link, or a provider

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <AuthProvider client={client}>
      <App />
    </AuthProvider>
  </StrictMode>,
);
