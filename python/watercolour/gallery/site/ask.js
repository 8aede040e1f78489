// Asking our own server: JSON in, JSON out, and errors that say what to do.

export class Trouble extends Error {}

export const ask = async (path, body) => {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Trouble("The program that serves this page has ended. Start it again; nothing that was saved is lost.");
  }
  if (response.ok) return response.json();
  const told = await response.json().catch(() => null);
  throw new Trouble(told?.message ? `${told.message} ${told.remedy ?? ""}` : `The server answers ${response.status}.`);
};

// An act's name: when it has to be sent again, the server knows it.
export const actId = () => [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
