/** The key of the API, typed in once: it is kept for this tab alone, and sent to this server alone. */

const PLACE = "limelight-key";

/** The key; empty where none was typed in. */
export const readKey = () => sessionStorage.getItem(PLACE) ?? "";

/** Keep a key, or forget it where it is empty. @param {string} key */
export function keepKey(key) {
  if (key) sessionStorage.setItem(PLACE, key);
  else sessionStorage.removeItem(PLACE);
}

/**
 * The headers that carry the key (RFC 6750, 2.1).
 *
 * @returns {Record<string, string>}
 */
export function authorize() {
  const key = readKey();
  return key ? { Authorization: `Bearer ${key}` } : {};
}
