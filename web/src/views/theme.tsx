import { useState } from "react";
import { setTheme, theme, type Theme } from "../shared/theme";
import { Button } from "../ui/kit";

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const icons: Record<Theme, string> = { system: "screen", light: "sun", dark: "moon" };

/** ThemeButton goes from the system's theme to light to dark. */
export function ThemeButton() {
  const [now, setNow] = useState(theme());
  return (
    <Button
      look="quiet" icon={icons[now]} aria-label={`Theme: ${now}. Switch to ${next[now]}.`} title={`Theme: ${now}`}
      onClick={() => {
        setTheme(next[now]);
        setNow(next[now]);
      }}
    />
  );
}
