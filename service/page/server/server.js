/** The server that this page came from. */

import { decodeSafetensors, encodeSafetensors } from "../formats/safetensors.js";
import { authorize } from "./key.js";

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */
/** @typedef {import("../input/input.js").Causal} Causal */

const MEDIA_TYPE = "application/x-safetensors";
const SILENT = "the server does not answer; it may have stopped";

/** Addresses are relative to the page, so that they are right below any prefix. */
export const ROOT = new URL(".", document.baseURI);

/** A refusal, in the server's words. */
export class ServerError extends Error {
  /** @param {number} status 0 where no answer came @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * What is served.
 *
 * @typedef {object} Model
 * @property {string} name
 * @property {string[]} versions ascending
 * @property {Record<string, string>} properties `provider` and sizes
 */

/**
 * A request to a model.
 *
 * @typedef {object} Question
 * @property {string} model
 * @property {string} version
 * @property {Map<string, Tensor>} tensors
 * @property {Causal} causal
 */

/**
 * @typedef {object} Reply
 * @property {Map<string, Tensor>} tensors `output` and `attention_weights`
 * @property {Facts} facts
 */

/**
 * How an answer came about.
 *
 * @typedef {object} Facts
 * @property {string} graph that ran
 * @property {number} queue_ms
 * @property {number} compute_ms
 * @property {number} total_ms from sending the request to having the answer, here
 * @property {number} bytes of the answer
 */

/** Names of the models. @param {AbortSignal} signal @returns {Promise<string[]>} */
export async function listModels(signal) {
  return (await readJson(await ask("v2/models", { signal }), signal)).models ?? [];
}

/**
 * One model; of `version`, or of the highest.
 *
 * @param {string} name
 * @param {string} version empty for the highest
 * @param {AbortSignal} signal
 * @returns {Promise<Model>}
 */
export async function readModel(name, version, signal) {
  const path = `v2/models/${encodeURIComponent(name)}${below(version)}`;
  return readJson(await ask(path, { signal }), signal);
}

/**
 * The example of a model.
 *
 * @param {string} name
 * @param {string} version
 * @param {AbortSignal} signal
 * @returns {Promise<ArrayBuffer | null>} a safetensors file; null where the model has none
 */
export async function readExample(name, version, signal) {
  const path = `v1/models/${encodeURIComponent(name)}${below(version)}/example`;
  const response = await ask(path, { signal });
  return response.status === 204 ? null : readBytes(response, signal);
}

/** @param {string} version */
const below = (version) => (version ? `/versions/${encodeURIComponent(version)}` : "");

/**
 * The address that a question is posted to.
 *
 * @param {Question} question
 * @param {string} [format] of the answer; that of the request unless given
 */
export function addressOf({ model, version, causal }, format) {
  const url = new URL("v1/attention", ROOT);
  url.searchParams.set("model", model);
  url.searchParams.set("version", version);
  if (causal) url.searchParams.set("causal", causal);
  url.searchParams.set("weights", "per_head");
  if (format) url.searchParams.set("format", format);
  return url;
}

/**
 * Let a model attend.
 *
 * @param {Question} question
 * @param {AbortSignal} signal
 * @returns {Promise<Reply>}
 * @throws {ServerError} if the server refuses
 */
export async function attend(question, signal) {
  const start = performance.now();
  const body = encodeSafetensors(question.tensors);
  const headers = { "Content-Type": MEDIA_TYPE };
  const response = await ask(addressOf(question), { method: "POST", body, headers, signal });
  const buffer = await readBytes(response, signal);
  const times = readTimes(response.headers.get("Server-Timing") ?? "");
  const facts = {
    graph: response.headers.get("Limelight-Graph") ?? "",
    queue_ms: times.queue,
    compute_ms: times.compute,
    total_ms: performance.now() - start,
    bytes: buffer.byteLength,
  };
  return { tensors: decodeSafetensors(buffer).tensors, facts };
}

/** Durations by name (https://www.w3.org/TR/server-timing/). @param {string} header */
function readTimes(header) {
  const found = [...header.matchAll(/(\w+);dur=([\d.]+)/g)];
  return Object.fromEntries(found.map(([, name, duration]) => [name, Number(duration)]));
}

/**
 * @param {string | URL} address
 * @param {RequestInit} [request]
 * @returns {Promise<Response>}
 */
async function ask(address, request = {}) {
  const headers = { ...request.headers, ...authorize() };
  let response;
  try {
    response = await fetch(new URL(address, ROOT), { ...request, headers });
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ServerError(0, SILENT);
  }
  if (response.ok) return response;
  throw new ServerError(response.status, await readRefusal(response));
}

/** @param {Response} response @param {AbortSignal} signal */
async function readBytes(response, signal) {
  try {
    return await response.arrayBuffer();
  } catch (error) {
    signal.throwIfAborted();
    throw new ServerError(0, "the answer broke off; the server may have stopped");
  }
}

/** @param {Response} response @param {AbortSignal} signal */
async function readJson(response, signal) {
  const bytes = await readBytes(response, signal);
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    const { pathname } = new URL(response.url);
    throw new ServerError(0, `${pathname} is answered by something else; is a proxy in between?`);
  }
}

/** @param {Response} response */
async function readRefusal(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || response.statusText; // of a proxy in between
  }
}
