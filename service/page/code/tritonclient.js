/** The request as Python with Triton's client, which speaks the V2 protocol. */

import { ROOT } from "../server/server.js";
import { PYTHON_WORDS, writeNested } from "./literals.js";

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */
/** @typedef {import("./code.js").Form} Form */

/** @type {Record<string, string>} */
const NUMPY_DTYPES = {
  BOOL: "bool",
  U8: "uint8",
  I8: "int8",
  U16: "uint16",
  I16: "int16",
  U32: "uint32",
  I32: "int32",
  U64: "uint64",
  I64: "int64",
  F32: "float32",
};
const MASKS = ["mask", "bias"];

/**
 * Write it. V2 has a batch axis everywhere, so tensors without one get it.
 *
 * @param {import("../server/server.js").Question} question
 * @param {Form} form
 */
export function writeTritonclient(
  { model, version, tensors, causal },
  { isLiteral, file, hasKey },
) {
  const isBatched = tensors.get("query")?.shape.length === 3;
  const arrays = [...tensors].map(([name, tensor]) => {
    const array = isLiteral
      ? `np.array(${writeNested(tensor, PYTHON_WORDS)}, np.${NUMPY_DTYPES[tensor.dtype]})`
      : `file["${name}"]`;
    return `    "${name}": ${array}${isBatched || keepsRank(name, tensor) ? "" : "[None]"},\n`;
  });
  return `${hasKey ? "import os\n\n" : ""}import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

${isLiteral ? "" : `file = np.load("${file}")\n`}arrays = {
${arrays.join("")}}
inputs = []
for name, array in arrays.items():
    inputs.append(triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
    inputs[-1].set_data_from_numpy(array)
client = triton.InferenceServerClient(${writeServer()})
result = client.infer(
    ${JSON.stringify(model)},
    inputs,
    model_version=${JSON.stringify(version)},
    outputs=[triton.InferRequestedOutput("attention_weights")],
${causal ? `    parameters={"causal": "${causal}"},\n` : ""}${hasKey ? KEY : ""})
weights = result.as_numpy("attention_weights")
print(weights.shape)
`;
}

const KEY = '    headers={"Authorization": f"Bearer {os.environ[\'LIMELIGHT_KEY\']}"},\n';

/** A mask of rows and keys is for all items anyway. @param {string} name @param {Tensor} tensor */
const keepsRank = (name, tensor) => MASKS.includes(name) && tensor.shape.length === 2;

function writeServer() {
  const address = JSON.stringify(`${ROOT.host}${ROOT.pathname}`.replace(/\/$/, ""));
  return ROOT.protocol === "https:" ? `${address}, ssl=True` : address;
}
