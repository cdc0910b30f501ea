import type { NextConfig } from "next";

const config: NextConfig = {
  // The auth server is on this application's own origin, so that its cookies come along.
  rewrites: async () => [{ source: "/auth/v1/:path*", destination: `${process.env.AUTH_INTERNAL_URL ?? "http://127.0.0.1:8080"}/auth/v1/:path*` }],
  poweredByHeader: false,
};

export default config;
