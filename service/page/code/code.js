/** The very request of the page as code that runs as it stands. */

import { writeCurl } from "./curl.js";
import { writeHttpx } from "./httpx.js";
import { areLiteral } from "./literals.js";
import { writeTritonclient } from "./tritonclient.js";

/** @typedef {"curl" | "httpx" | "tritonclient"} Language */

/**
 * How the code holds the tensors and the key.
 *
 * @typedef {object} Form
 * @property {boolean} isLiteral whether the numbers are in the code
 * @property {string} file that has them where they are not
 * @property {boolean} hasKey whether the server wants a key: the code reads it from LIMELIGHT_KEY
 */

export const FILE = "request.npz";

const WRITERS = { curl: writeCurl, httpx: writeHttpx, tritonclient: writeTritonclient };

/**
 * Write a request.
 *
 * @param {Language} language
 * @param {import("../server/server.js").Question} question
 * @param {boolean} hasKey
 * @returns {{text: string, needsFile: boolean}} the code, and whether it reads `FILE`
 */
export function writeCode(language, question, hasKey) {
  const isLiteral = areLiteral(question.tensors);
  const text = WRITERS[language](question, { isLiteral, file: FILE, hasKey });
  return { text, needsFile: !isLiteral };
}
