// Names the theme before the page is painted: the one that was chosen here, else the system's, also when that changes.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const name = () => {
    let chosen = null;
    try {
      chosen = localStorage.getItem("taskyard-theme");
    } catch {
      // Storage is forbidden: the system's choice counts.
    }
    document.documentElement.dataset.theme = ["light", "dark"].includes(chosen) ? chosen : system.matches ? "dark" : "light";
  };
  name();
  system.addEventListener("change", name);
})();
