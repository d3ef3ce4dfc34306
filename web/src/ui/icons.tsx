import type { ReactNode } from "react";

// Icons on a grid of 20, drawn with the text's colour.
const paths: Record<string, ReactNode> = {
  overview: <path d="M3 16.500h14M5 13.500v-4M9.300 13.500v-9M13.700 13.500v-6M17 5.500" />,
  usage: <path d="M3.500 5h13M3.500 10h13M3.500 15h8" />,
  keys: <><circle cx="7" cy="13" r="3.500" /><path d="M9.600 10.400 16.500 3.500M13.500 6.500l2 2M11.500 8.500l1.500 1.500" /></>,
  customers: <><circle cx="7.500" cy="7" r="3" /><path d="M2.500 16.500c.4-3 2.300-4.500 5-4.500s4.600 1.500 5 4.500M13 4.300a3 3 0 0 1 0 5.400M14.500 12.200c1.700.6 2.700 2 3 4.300" /></>,
  budgets: <><path d="M10 3.500a6.500 6.500 0 1 0 6.500 6.500H10z" /><path d="M12.800 3.600a6.500 6.500 0 0 1 3.700 3.700" /></>,
  limits: <><path d="M4.600 14.800a7 7 0 1 1 10.800 0M10 11l3.200-4" /><circle cx="10" cy="11" r="1" /></>,
  jobs: <><circle cx="10" cy="10" r="6.500" /><path d="M10 6.300V10l2.500 2" /></>,
  models: <path d="m10 3 6 3.300v7.400L10 17l-6-3.300V6.300zM4.200 6.400 10 9.700l5.800-3.300M10 9.700V17" />,
  branding: <><path d="M10 3.500c-3.800 0-6.700 2.800-6.700 6.400 0 3.700 2.900 6.600 6.300 6.600 1.300 0 1.800-.9 1.500-1.900-.4-1.300.2-2.200 1.600-2.200h1.600c1.500 0 2.500-1 2.500-2.600-.1-3.600-3.100-6.300-6.800-6.300z" /><circle cx="6.800" cy="9.500" r=".6" /><circle cx="9.300" cy="6.800" r=".6" /><circle cx="13" cy="7.500" r=".6" /></>,
  billing: <><rect x="3" y="4.500" width="14" height="11" rx="2" /><path d="M3 8.500h14M6 12.500h3" /></>,
  evidence: <><path d="m10 3 6 2.300v4.200c0 3.600-2.400 6.200-6 7.500-3.600-1.300-6-3.900-6-7.500V5.300z" /><path d="m7.500 9.800 1.800 1.800 3.300-3.500" /></>,
  start: <path d="m7 6-4 4 4 4M13 6l4 4-4 4M11.300 4.500 8.700 15.500" />,
  close: <path d="m5.500 5.500 9 9M14.500 5.500l-9 9" />,
  copy: <><rect x="7" y="7" width="9.500" height="9.500" rx="2" /><path d="M13 7V5.500a2 2 0 0 0-2-2H5.500a2 2 0 0 0-2 2V11a2 2 0 0 0 2 2H7" /></>,
  check: <path d="m4.500 10.500 3.500 3.500 7.500-8" />,
  plus: <path d="M10 4.500v11M4.500 10h11" />,
  download: <path d="M10 3.500v9M6.500 9.300 10 12.800l3.500-3.500M4 16.500h12" />,
  more: <><circle cx="4.500" cy="10" r=".8" /><circle cx="10" cy="10" r=".8" /><circle cx="15.500" cy="10" r=".8" /></>,
  search: <><circle cx="9" cy="9" r="5" /><path d="m12.800 12.800 3.700 3.700" /></>,
  menu: <path d="M3.500 6h13M3.500 10h13M3.500 14h13" />,
  left: <path d="m12 5-5 5 5 5" />,
  right: <path d="m8 5 5 5-5 5" />,
  down: <path d="m5.500 8 4.500 4.500L14.500 8" />,
  sun: <><circle cx="10" cy="10" r="3.200" /><path d="M10 3v1.500M10 15.500V17M3 10h1.500M15.500 10H17M5 5l1 1M14 14l1 1M15 5l-1 1M6 14l-1 1" /></>,
  moon: <path d="M16 11.500A6.500 6.500 0 1 1 8.500 4a5.200 5.200 0 0 0 7.500 7.500z" />,
  screen: <><rect x="3" y="4" width="14" height="9.500" rx="1.500" /><path d="M7.500 16.500h5" /></>,
  out: <path d="M8 4H5.500a1.500 1.500 0 0 0-1.500 1.500v9A1.500 1.500 0 0 0 5.500 16H8M12.500 6.500 16 10l-3.500 3.500M16 10H8" />,
  alert: <><path d="M10 3.500 17.500 16h-15z" /><path d="M10 8.200v3.600M10 13.700v.2" /></>,
  play: <path d="M6.500 4.500v11l9-5.500z" />,
  stop: <rect x="5.500" y="5.500" width="9" height="9" rx="1.500" />,
  table: <><rect x="3" y="4" width="14" height="12" rx="1.500" /><path d="M3 8h14M3 12h14M8.500 8v8" /></>,
  chart: <path d="M3.500 15.500 8 10l3 2.500 5.500-7" />,
  link: <path d="M8.500 11.500a3 3 0 0 0 4.300 0l2.700-2.700a3 3 0 0 0-4.300-4.300l-1 1M11.500 8.500a3 3 0 0 0-4.300 0l-2.700 2.700a3 3 0 0 0 4.300 4.300l1-1" />,
  refresh: <path d="M16 9a6 6 0 1 0-1.300 5M16 4.500V9h-4.500" />,
};

export function Icon({ name, size = 18 }: { name: string; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 20 20" fill="none" stroke="currentColor" strokeWidth="1.500" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      {paths[name]}
    </svg>
  );
}
