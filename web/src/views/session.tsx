import { useEffect, useState } from "react";
import { Failure, get, onSignedOut, send, unreachable, type Session } from "../shared/api";
import { forget } from "../shared/use";

export interface Signed {
  session: Session | undefined;
  /** Whether it is known yet whether there is one. */
  known: boolean;
  failure: Failure | undefined;
  ended: boolean;
  enter: (s: Session) => void;
  leave: () => void;
}

/** useSession is who is signed in, from the first look on to the end. */
export function useSession(): Signed {
  const [state, set] = useState<{ session?: Session; known: boolean; failure?: Failure; ended: boolean }>({ known: false, ended: false });
  useEffect(() => {
    onSignedOut(() => {
      forget();
      set({ known: true, ended: true });
    });
    get<Session>("/session").then(
      (session) => set({ session, known: true, ended: false }),
      (e) => set({ known: true, ended: false, failure: e instanceof Failure && e.status === 401 ? undefined : e instanceof Failure ? e : unreachable() }),
    );
  }, []);
  return {
    ...state,
    session: state.session,
    failure: state.failure,
    enter: (session) => set({ session, known: true, ended: false }),
    leave: () => {
      void send("DELETE", "/session").catch(() => {});
      forget();
      set({ known: true, ended: false });
    },
  };
}
