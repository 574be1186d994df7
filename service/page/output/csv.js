/** One head's weights as text: a line for each query, a column for each key. */

import { pickRow } from "../answer/matrix.js";
import { writeFloat32 } from "../formats/dtypes.js";

/**
 * Write a matrix (RFC 4180), each number so that the same float32 is read back.
 *
 * @param {import("../answer/matrix.js").Matrix} matrix
 * @param {{rows: string[], columns: string[]}} labels numbers take the place of those that are not there
 * @returns {Blob}
 */
export function writeCsv(matrix, labels) {
  const names = Array.from({ length: matrix.columns }, (_, key) =>
    quote(labels.columns[key] ?? String(key)),
  );
  const lines = [["query", ...names].join(",")];
  for (let query = 0; query < matrix.rows; query += 1) {
    const numbers = Array.from(pickRow(matrix, query), writeFloat32);
    lines.push([quote(labels.rows[query] ?? String(query)), ...numbers].join(","));
  }
  return new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" });
}

/** @param {string} text */
const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
