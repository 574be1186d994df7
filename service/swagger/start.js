// Starts Swagger UI. Where the server wants a key it is asked for first, and kept in this page alone.

/* global SwaggerUIBundle */

const url = document.querySelector("link[rel=service-desc]").href;
const form = document.getElementById("ask");
const input = document.getElementById("key");
const answer = document.getElementById("answer");

/** The headers that carry a key; none where there is none. */
const authorize = (key) => (key ? { Authorization: `Bearer ${key}` } : {});

/** Show the API, and send the key with every request that is tried. */
function show(key) {
  form.hidden = true;
  SwaggerUIBundle({
    url,
    dom_id: "#api",
    deepLinking: true,
    showExtensions: true,
    showCommonExtensions: true,
    requestInterceptor: (request) => {
      // That of "Authorize" goes first: another key may be tried.
      request.headers = { ...authorize(key), ...request.headers };
      return request;
    },
  });
}

/** Show the API if the server lets us read it, else ask for a key. */
async function open(key) {
  const { status } = await fetch(url, { method: "HEAD", headers: authorize(key) });
  if (status !== 401) {
    show(key);
    return;
  }
  form.hidden = false;
  answer.textContent = key ? "The server does not know this key." : "";
  input.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  open(input.value);
});

await open("");
