/** The request as Python with httpx. */

import { addressOf } from "../server/server.js";
import { PYTHON_WORDS, writeNested } from "./literals.js";

/** @typedef {import("./code.js").Form} Form */

/**
 * Write it.
 *
 * @param {import("../server/server.js").Question} question
 * @param {Form} form
 */
export function writeHttpx(question, form) {
  return form.isLiteral ? writeJson(question, form) : writeFile(question, form);
}

/** @param {import("../server/server.js").Question} question @param {Form} form */
function writeJson(question, { hasKey }) {
  const members = [...question.tensors].map(
    ([name, tensor]) => `    "${name}": ${writeNested(tensor, PYTHON_WORDS)},\n`,
  );
  return `${hasKey ? "import os\n\n" : ""}import httpx
import numpy as np

body = {
${members.join("")}}
answer = httpx.post(
    ${JSON.stringify(addressOf(question).href)},
    json=body,
${hasKey ? KEY : ""}    timeout=60,
)
if answer.is_error:
    raise SystemExit(answer.text)
weights = np.array(answer.json()["attention_weights"], np.float32)
print(weights.shape)
`;
}

const KEY = '    headers={"Authorization": f"Bearer {os.environ[\'LIMELIGHT_KEY\']}"},\n';

/** @param {import("../server/server.js").Question} question @param {Form} form */
function writeFile(question, { file, hasKey }) {
  return `import io
${hasKey ? "import os\n" : ""}from pathlib import Path

import httpx
import numpy as np

answer = httpx.post(
    ${JSON.stringify(addressOf(question, "npz").href)},
    content=Path("${file}").read_bytes(),
${hasKey ? KEY : ""}    timeout=60,
)
if answer.is_error:
    raise SystemExit(answer.text)
weights = np.load(io.BytesIO(answer.content))["attention_weights"]
print(weights.shape)
`;
}
