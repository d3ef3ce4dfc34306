import { useState } from "react";

/** Logo is a brand's picture, or its initial where there is none or it does not load. */
export function Logo({ name, url }: { name: string; url: string | null }) {
  const [broken, setBroken] = useState<string>();
  if (!url || broken === url) return <span className="initial" aria-hidden="true">{[...name.trim()][0]?.toUpperCase() ?? "·"}</span>;
  return <img className="logo" src={url} alt="" referrerPolicy="no-referrer" decoding="async" onError={() => setBroken(url)} />;
}
