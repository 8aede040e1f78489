// Light or dark: as the system has it, until somebody chooses.
import { kept } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = (button) => {
  const show = () => {
    const dark = kept.get("theme", system.matches ? "dark" : "light") === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "☀" : "☾";
  };
  button.addEventListener("click", () => {
    kept.set("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
};
