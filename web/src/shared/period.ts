// Periods of the figures. Each begins with a whole hour or day, so that what
// the pages say of the same period is the same everywhere.

const days: Record<string, number> = { "24h": 1, "7d": 7, "30d": 30, "90d": 90 };

/** hoursOf is how many hours a period has. */
export function hoursOf(period: string): number {
  return 24 * (days[period] ?? 1);
}

/** lengthOf is how long the spans of a period are, in milliseconds, and how many it has. */
export function lengthOf(period: string): [length: number, n: number] {
  return period === "24h" ? [3_600_000, 24] : [86_400_000, days[period] ?? 1];
}

/** beganOf is how long ago the first span of a period began. */
export function beganOf(period: string, now: number): string {
  const [length, n] = lengthOf(period);
  return now - (Math.floor(now / length) - (n - 1)) * length + "ms";
}

/** withinOf is how long ago some instant of that span was; series begin with whole spans. */
export function withinOf(period: string): string {
  const [length, n] = lengthOf(period);
  return (n - 1) * length + "ms";
}
