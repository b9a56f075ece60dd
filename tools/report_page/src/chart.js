// What all charts of uPlot share.
import { colour } from "./format.js";

export const HEIGHT = 380; // px

/** An axis in the page's colours and fonts. */
export function axis(extra) {
  const line = { stroke: colour("line"), width: 1 };
  const font = "12px system-ui";
  return { stroke: colour("text"), grid: line, ticks: line, font, labelFont: font, ...extra };
}

/**
 * Calls `redraw` whenever colours change, for light, dark and paper, and `resize` with the width of
 * `box` whenever that does; returns what ends both.
 */
export function watch(box, redraw, resize) {
  const queries = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
  queries.forEach((query) => query.addEventListener("change", redraw));
  const resized = new ResizeObserver(() => resize(box.clientWidth));
  resized.observe(box);
  return () => {
    queries.forEach((query) => query.removeEventListener("change", redraw));
    resized.disconnect();
  };
}
