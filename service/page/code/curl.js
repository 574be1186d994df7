/** The request as a line for a shell. */

import { addressOf } from "../server/server.js";
import { JSON_WORDS, writeNested } from "./literals.js";

/** @typedef {import("./code.js").Form} Form */

/**
 * Write it.
 *
 * @param {import("../server/server.js").Question} question
 * @param {Form} form
 */
export function writeCurl(question, { isLiteral, file, hasKey }) {
  const key = hasKey ? ' \\\n  -H "Authorization: Bearer $LIMELIGHT_KEY"' : "";
  if (!isLiteral) {
    const address = quote(addressOf(question, "npz").href);
    return `curl -sS --fail-with-body ${address}${key} \\\n  --data-binary @${file} -o answer.npz\n`;
  }
  const members = [...question.tensors].map(
    ([name, tensor]) => `"${name}": ${writeNested(tensor, JSON_WORDS)}`,
  );
  const body = `{${members.join(",\n  ")}}`;
  return `curl -sS ${quote(addressOf(question).href)}${key} \\\n  -d ${quote(body)}\n`;
}

/** One word for a POSIX shell. @param {string} text */
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
