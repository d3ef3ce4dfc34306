import { useEffect, useState, type ReactNode } from "react";
import { csv, save } from "../shared/format";
import type { Failure } from "../shared/api";
import { Bones, Button, Trouble } from "./kit";

export interface Column<T> {
  title: string;
  /** What stands in the cell. */
  cell: (row: T) => ReactNode;
  /** What stands in the CSV; without it the column is not in it. */
  text?: (row: T) => string | number | null | undefined;
  end?: boolean; // figures stand at the end of the cell
  tight?: boolean; // as narrow as its content
  hide?: "narrow" | "middle"; // not there on narrow screens, but in the cards of phones; or on all but wide ones
  quiet?: boolean; // the title is for screen readers only
}

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  id: (row: T) => string;
  busy?: boolean;
  failure?: Failure;
  again?: () => void;
  empty: ReactNode;
  onOpen?: (row: T) => void;
  /** Rows on a page; 0 shows all. */
  page?: number;
  bones?: number;
  foot?: ReactNode;
}

/** Table lists rows, in pages where there are many. On phones each row is a card. */
export function Table<T>({ label, columns, rows, id, failure, again, empty, onOpen, page = 50, bones = 6, foot }: TableProps<T>) {
  const [at, setAt] = useState(0);
  const total = rows?.length ?? 0;
  const pages = page > 0 ? Math.max(1, Math.ceil(total / page)) : 1;
  useEffect(() => {
    if (at >= pages) setAt(pages - 1);
  }, [at, pages]);
  if (failure) return <div className="pad"><Trouble failure={failure} again={again} /></div>;
  if (rows && total === 0) return <>{empty}</>;
  const shown = page > 0 ? rows?.slice(at * page, at * page + page) : rows;
  const cls = (c: Column<T>) => [c.end && "end", c.tight && "tight", c.quiet && "quiet", c.hide].filter(Boolean).join(" ") || undefined;
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label={label}>
        <table className="cards" role="table" aria-busy={!rows}>
          <caption className="hidden">{label}</caption>
          <thead>
            <tr>
              {columns.map((c) => (
                <th key={c.title} scope="col" className={cls(c)}>{c.quiet ? <span className="hidden">{c.title}</span> : c.title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown
              ? shown.map((row) => (
                  <tr key={id(row)} role="row" className={onOpen && "opens"} onClick={onOpen && ((e) => !(e.target as Element).closest("a,button,input,dialog") && onOpen(row))}>
                    {columns.map((c) => (
                      <td key={c.title} role="cell" className={cls(c)} data-title={c.quiet ? undefined : c.title}>{c.cell(row)}</td>
                    ))}
                  </tr>
                ))
              : Array.from({ length: bones }, (_, i) => (
                  <tr key={i}>
                    {columns.map((c, j) => (
                      <td key={c.title} className={cls(c)}><Bones height={14} width={`${40 + ((i * 7 + j * 13) % 5) * 11}%`} /></td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </div>
      {(pages > 1 || foot) && (
        <footer className="pager">
          {pages > 1 && (
            <>
              <span className="note" role="status">{at * page + 1}–{Math.min(total, at * page + page)} of {total}</span>
              <Button icon="left" aria-label="Previous page" disabled={at === 0} onClick={() => setAt(at - 1)} />
              <Button icon="right" aria-label="Next page" disabled={at >= pages - 1} onClick={() => setAt(at + 1)} />
            </>
          )}
          {foot}
        </footer>
      )}
    </>
  );
}

/** Download saves the columns of the rows that are shown. */
export function Download<T>({ name, columns, rows }: { name: string; columns: Column<T>[]; rows: T[] | undefined }) {
  const written = columns.filter((c) => c.text);
  return (
    <Button
      icon="download"
      disabled={!rows?.length}
      onClick={() => save(name + ".csv", csv([written.map((c) => c.title), ...(rows ?? []).map((r) => written.map((c) => c.text?.(r)))]))}
    >
      CSV
    </Button>
  );
}
