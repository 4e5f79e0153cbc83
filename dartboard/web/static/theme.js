// Sets the chosen theme before the first paint; without a choice the system decides.
try {
  const theme = localStorage.getItem("dartboard-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be closed to this page; the system's theme serves.
}
