// Numbers, sizes and colours as all parts of the page write them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** 65536 is "64 KiB"; what no unit divides stays in bytes. */
export function size(bytes) {
  let unit = 0;
  while (unit + 1 < UNITS.length && bytes > 0 && bytes % 1024 === 0) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes} ${UNITS[unit]}`;
}

/** Four digits; the whole part of large numbers whole. */
export function number(value) {
  if (value === null || value === undefined) return "";
  if (Number.isInteger(value)) return String(value);
  const magnitude = Math.abs(value);
  if (magnitude >= 1000) return value.toFixed(0);
  if (magnitude >= 0.001) return String(Number(value.toPrecision(4)));
  return value.toExponential(2);
}

export const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

/** A column's name with its unit; sizes have theirs in each cell. */
export const heading = ({ name, unit }) => (unit && unit !== "B" ? `${name}, ${unit}` : name);

/** A table's cell as text. */
export function cell(value, column) {
  if (value === null || value === "") return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value;
  return column.unit === "B" ? size(value) : number(value);
}

/** A colour of page.css, as it is under the present scheme. */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export const COLOURS = 8;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/**
 * How curve number `index` is drawn, of file number `file`: its colour's name and its dashes. A file
 * has dashes of its own, so that curves of two files that coincide are both seen.
 */
export const pen = (index, file) => ({
  ink: `curve${index % COLOURS}`,
  dash: DASHES[(file + Math.floor(index / COLOURS)) % DASHES.length],
});
