import { useEffect, useState, type ReactNode } from "react";
import { Failure, onSignedOut, session as ask, unreachable, type Session } from "../shared/api";
import { forget } from "../shared/use";
import { Button, Dialog, Trouble } from "../ui/kit";

export interface Signed {
  session: Session | undefined;
  /** Whether it is known yet whether there is one. */
  known: boolean;
  failure: Failure | undefined;
  ended: boolean;
  enter: (s: Session) => void;
  leave: () => void;
  /** Why a session that this browser has left may go on elsewhere. */
  left: Failure | undefined;
  /** Why leaving did not work: the browser still holds the session. */
  stuck: Failure | undefined;
  stay: () => void;
}

/** useSession is who is signed in, from the first look on to the end. */
export function useSession(): Signed {
  const [state, set] = useState<{ session?: Session; known: boolean; failure?: Failure; ended: boolean; left?: Failure; stuck?: Failure }>({ known: false, ended: false });
  useEffect(() => {
    onSignedOut(() => {
      forget();
      set({ known: true, ended: true });
    });
    ask("GET").then(
      (session) => set({ session, known: true, ended: false }),
      (e) => set({ known: true, ended: false, failure: e instanceof Failure && e.status === 401 ? undefined : e instanceof Failure ? e : unreachable() }),
    );
  }, []);
  return {
    ...state,
    session: state.session,
    failure: state.failure,
    left: state.left,
    stuck: state.stuck,
    enter: (session) => set({ session, known: true, ended: false }),
    leave: () =>
      void ask("DELETE").then(
        (then) => {
          forget();
          if (then) return location.assign(then.url); // the provider's session ends too
          set({ known: true, ended: false });
        },
        (e) => {
          const failure = e instanceof Failure ? e : unreachable();
          if (failure.status !== 503) return set((s) => ({ ...s, stuck: failure }));
          forget(); // the cookie is gone, the database away
          set({ known: true, ended: false, left: failure });
        },
      ),
    stay: () => set((s) => ({ ...s, stuck: undefined })),
  };
}

/** Away stands where it cannot be told who is signed in. */
export function Away({ title, mark, failure }: { title: string; mark: ReactNode; failure: Failure }) {
  return (
    <main className="door">
      <div>
        <div className="title">{mark}<h1>{title}</h1></div>
        <Trouble failure={failure} again={() => location.reload()} />
      </div>
    </main>
  );
}

/** Stuck says that somebody who wanted to leave is still signed in. */
export function Stuck({ signed }: { signed: Signed }) {
  if (!signed.stuck) return null;
  return (
    <Dialog title="You are still signed in" onClose={signed.stay}>
      <div className="stack">
        <Trouble failure={signed.stuck} />
        <div className="row end">
          <Button onClick={signed.stay}>Stay</Button>
          <Button look="primary" onClick={signed.leave}>Sign out</Button>
        </div>
      </div>
    </Dialog>
  );
}
