import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const out = here("../internal/dashboard/dist");

// The build goes to where the binary embeds it. The pages share their files,
// which the gateway serves under /dashboard/assets.
export default defineConfig({
  base: "/dashboard/",
  build: {
    outDir: out,
    emptyOutDir: false,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // those that know light-dark()
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: { dashboard: here("dashboard.html"), portal: here("portal.html"), operator: here("operator.html") } },
  },
  plugins: [
    {
      name: "clear",
      buildStart() {
        for (const name of readdirSync(out)) {
          if (name !== ".keep") rmSync(`${out}/${name}`, { recursive: true });
        }
      },
    },
  ],
});
