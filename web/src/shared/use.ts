import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { Failure, unreachable } from "./api";

// Answers are kept while the page is open, so that coming back to a view shows
// it at once while it is read again.
const kept = new Map<string, unknown>();
const watchers = new Map<string, Set<() => void>>();

/** refresh reads again what views show of the paths that begin so. */
export function refresh(...prefixes: string[]): void {
  for (const [key, set] of watchers) {
    if (prefixes.some((p) => key.startsWith(p))) set.forEach((again) => again());
  }
  for (const key of kept.keys()) {
    if (prefixes.some((p) => key.startsWith(p)) && !watchers.get(key)?.size) kept.delete(key);
  }
}

/** forget drops everything, for the end of a session. */
export function forget(): void {
  kept.clear();
}

export interface Asked<T> {
  data: T | undefined;
  failure: Failure | undefined;
  busy: boolean;
  again: () => void;
}

/** useAsked reads something by its key; a key of undefined reads nothing. */
export function useAsked<T>(key: string | undefined, read: () => Promise<T>): Asked<T> {
  const [state, set] = useState<{ key?: string; data?: T; failure?: Failure; busy: boolean }>({ busy: key !== undefined });
  const [turn, setTurn] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  const again = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (key === undefined) return;
    let current = true;
    set((s) => ({ ...s, busy: true }));
    reader.current().then(
      (data) => {
        kept.set(key, data);
        if (current) set({ key, data, busy: false });
      },
      (error) => {
        if (current) set({ key, failure: error instanceof Failure ? error : unreachable(), busy: false });
      },
    );
    let set_ = watchers.get(key);
    if (!set_) watchers.set(key, (set_ = new Set()));
    set_.add(again);
    return () => {
      current = false;
      watchers.get(key)?.delete(again);
    };
  }, [key, turn, again]);
  const mine = state.key === key;
  return {
    data: mine && state.data !== undefined ? state.data : key === undefined ? undefined : mine && state.failure ? undefined : (kept.get(key) as T | undefined),
    failure: mine ? state.failure : undefined,
    busy: key !== undefined && (state.busy || !mine),
    again,
  };
}

const pollEvery = 10_000;
const pollSlowest = 60_000;

/** usePoll asks whether something has changed, while the page is visible: every ten seconds, and less often while that fails. It is the time of the last answer while there is none. */
export function usePoll(ask: (() => Promise<void>) | undefined): Date | undefined {
  const [stale, setStale] = useState<Date>();
  const answered = useRef(new Date());
  const asker = useRef(ask);
  asker.current = ask;
  const wanted = ask !== undefined;
  useEffect(() => {
    if (!wanted) return;
    let pause = pollEvery;
    let timer = 0;
    const next = () => {
      timer = window.setTimeout(turn, pause);
    };
    const turn = () => {
      if (document.hidden || !asker.current) return next();
      asker.current().then(
        () => {
          pause = pollEvery;
          answered.current = new Date();
          setStale(undefined);
        },
        () => {
          pause = Math.min(2 * pause, pollSlowest);
          setStale(answered.current);
        },
      ).finally(next);
    };
    next();
    return () => clearTimeout(timer);
  }, [wanted]);
  return wanted ? stale : undefined;
}

/** useAction runs something that changes things, once at a time. */
export function useAction(): { busy: boolean; failure: Failure | undefined; run: (what: () => Promise<void>) => Promise<boolean>; clear: () => void } {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = useCallback(async (what: () => Promise<void>) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await what();
      return true;
    } catch (error) {
      setFailure(error instanceof Failure ? error : unreachable());
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  const clear = useCallback(() => setFailure(undefined), []);
  return { busy, failure, run, clear };
}

/** useWidth measures an element. */
export function useWidth<E extends HTMLElement>(): [React.RefObject<E | null>, number] {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    setWidth(element.clientWidth);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}

/** useMedia follows a media query. */
export function useMedia(text: string): boolean {
  return useSyncExternalStore(
    useCallback(
      (then: () => void) => {
        const list = matchMedia(text);
        list.addEventListener("change", then);
        return () => list.removeEventListener("change", then);
      },
      [text],
    ),
    () => matchMedia(text).matches,
  );
}
