"use strict";
// The page's own numbers, saved as a file.
document.getElementById("save").addEventListener("click", (event) => {
  const blob = new Blob([document.getElementById("numbers").textContent], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = event.currentTarget.dataset.name;
  link.click();
  URL.revokeObjectURL(link.href);
});
document.documentElement.dataset.ready = "yes";
