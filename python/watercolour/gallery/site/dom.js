// The few things that every page does with its elements.

export const $ = (id) => document.getElementById(id);

export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// Whatever the browser keeps for this page; a private window may refuse.
export const kept = {
  get(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; }
  },
  set(name, value) {
    try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* Then it is asked for anew. */ }
  },
};
