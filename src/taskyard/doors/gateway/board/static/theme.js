// Runs before the page is painted, so that a chosen theme does not flash.
(() => {
  try {
    const chosen = localStorage.getItem("taskyard-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is forbidden: the system's choice counts.
  }
})();
