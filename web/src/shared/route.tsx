import { useSyncExternalStore, type AnchorHTMLAttributes } from "react";
import { root } from "./api";

// The address bar is the state: /dashboard/usage?provider=openai. Views are
// found by the path below the root, and filters are kept in the query.

const listeners = new Set<() => void>();

function changed(): void {
  listeners.forEach((then) => then());
}

addEventListener("popstate", changed);

/** go opens a path below the root; replace keeps it out of the history. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  history[how === "push" ? "pushState" : "replaceState"](null, "", root + to);
  changed();
  if (how === "push") {
    scrollTo(0, 0);
    document.getElementById("content")?.focus({ preventScroll: true });
  }
}

/** useRoute is the path below the root, "/" for the root itself, and its query. */
export function useRoute(): { path: string; params: URLSearchParams } {
  const text = useSyncExternalStore(
    (then) => {
      listeners.add(then);
      return () => listeners.delete(then);
    },
    () => location.pathname.slice(root.length) + location.search,
  );
  const [path, search] = text.split("?");
  return { path: "/" + (path ?? "").replace(/^\/|\/$/g, ""), params: new URLSearchParams(search ?? "") };
}

/** useFilter is one value kept in the query of the address. */
export function useFilter(name: string, usual = ""): [string, (value: string) => void] {
  const { path, params } = useRoute();
  return [
    params.get(name) ?? usual,
    (value) => {
      const next = new URLSearchParams(location.search);
      if (value === usual) next.delete(name);
      else next.set(name, value);
      const text = next.toString();
      go((path === "/" ? "" : path) + (text && "?" + text), "replace");
    },
  ];
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** Link goes to a path below the root without loading the page again. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={root + to}
      onClick={(event) => {
        onClick?.(event);
        if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(to);
      }}
    />
  );
}
